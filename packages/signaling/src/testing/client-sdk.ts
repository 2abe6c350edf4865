/** The endpoint class of the published client SDK, unmodified, with a browser that the test simulates. */
import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { buildSync } from 'esbuild';
import type { FakeConnection, FakeTrack } from './fake-connection.js';

export interface SdkTrackContext {
  trackId: string;
  track: FakeTrack | null;
  stream: { id: string } | null;
  metadata: unknown;
  encoding?: string;
  vadStatus: string;
  simulcastConfig: { enabled: boolean; activeEncodings: string[]; disabledEncodings: string[] };
}

export interface SdkEndpoint extends EventEmitter {
  connection: FakeConnection | undefined;
  commandsQueue: unknown[];
  localTrackIdToTrack: Map<string, { track: FakeTrack | null; metadata: unknown }>;
  ongoingRenegotiation: boolean;
  connect(metadata: unknown): void;
  disconnect(): void;
  receiveMediaEvent(text: string): void;
  addTrack(
    track: FakeTrack,
    stream: { id: string },
    metadata: unknown,
    simulcast?: { enabled: boolean; activeEncodings: string[]; disabledEncodings: string[] },
  ): Promise<string>;
  removeTrack(trackId: string): Promise<void>;
  replaceTrack(trackId: string, track: FakeTrack | null, metadata?: unknown): Promise<void>;
  updateTrackMetadata(trackId: string, metadata: unknown): void;
  updateEndpointMetadata(metadata: unknown): void;
  setTargetTrackEncoding(trackId: string, variant: string): void;
  disableTrackEncoding(trackId: string, encoding: string): void;
  getRemoteTracks(): Record<string, SdkTrackContext>;
  getRemoteEndpoints(): Record<string, { id: string; metadata: unknown }>;
}

export interface FakeBrowser {
  connection: (config: unknown) => FakeConnection;
  /** Receives anything that the SDK prints, which it only does when something is wrong. */
  print: (...values: unknown[]) => void;
}

let compiled: string | undefined;

export function createSdkEndpoint(browser: FakeBrowser): SdkEndpoint {
  compiled ??= compile();
  const module = { exports: {} as { WebRTCEndpoint: new () => SdkEndpoint } };
  const console = { log: browser.print, warn: browser.print, error: browser.print };
  // The SDK calls `new` on it; a constructor may return another object.
  function RTCPeerConnection(config: unknown) {
    return browser.connection(config);
  }
  function RTCIceCandidate(init: object) {
    return { ...init };
  }
  const names = ['module', 'exports', 'console', 'RTCPeerConnection', 'RTCIceCandidate'];
  const run = new Function(...names, compiled) as (...values: unknown[]) => void;
  run(module, module.exports, console, RTCPeerConnection, RTCIceCandidate);
  return new module.exports.WebRTCEndpoint();
}

/** The package only exports its top class, which opens a websocket; the tests need the endpoint class below it. */
function compile(): string {
  const index = createRequire(import.meta.url).resolve('@jellyfish-dev/ts-client-sdk');
  const result = buildSync({
    entryPoints: [join(dirname(index), 'webrtc', 'webRTCEndpoint.js')],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'browser',
  });
  return result.outputFiles[0]?.text ?? '';
}
