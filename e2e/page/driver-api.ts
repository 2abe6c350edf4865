// What a page under test can do, and what it reports. Shared by the page and the tests that drive it; everything here
// crosses the process boundary as JSON.

export type Encoding = 'l' | 'm' | 'h';

/** The colours of generated pictures. They survive chroma subsampling and are identified by the nearest name. */
export const colours = {
  red: [200, 30, 30],
  green: [30, 150, 40],
  blue: [40, 50, 200],
  yellow: [210, 200, 40],
  magenta: [190, 40, 190],
  cyan: [40, 190, 200],
  grey: [128, 128, 128],
  black: [0, 0, 0],
} as const satisfies Record<string, readonly [number, number, number]>;
export type Colour = keyof typeof colours;

export interface PictureOptions {
  readonly kind: 'picture';
  readonly colour: Colour;
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
  /** Fills part of the picture with noise, so that the encoder spends bits: half of it, or this share. */
  readonly noisy?: boolean | number;
}

export interface ToneOptions {
  readonly kind: 'tone';
  readonly hz: number;
}

/** A picture that flashes and a sound that beeps half a second later: two sources, the sound after the picture. */
export interface ClapperOptions {
  readonly kind: 'clapper';
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
}

export type SourceOptions = PictureOptions | ToneOptions | ClapperOptions;

export interface AddTrackOptions {
  readonly metadata?: unknown;
  /** Encodings active from the start; present means simulcast. */
  readonly simulcast?: readonly Encoding[];
  /** kbit/s, for the track or for each encoding; absent means without limit. */
  readonly maxBandwidth?: number | Partial<Record<Encoding, number>>;
  /** Adds the track to the stream of this earlier source, as with a camera's sound and picture. */
  readonly streamOf?: number;
}

export interface ConnectOptions {
  readonly token: string;
  /** `host:port` of the signalling socket. */
  readonly host: string;
  /** Absent means no metadata at all. */
  readonly metadata?: unknown;
  readonly reconnect?:
    | boolean
    | { readonly maxAttempts?: number; readonly initialDelay?: number; readonly delay?: number };
  /** Parsers that take only `{ goodStuff: string }`, keep only that key, and throw on anything else. */
  readonly strictParsers?: boolean;
  /** Adds this source in the handler of `joined`, as eager applications do. */
  readonly addOnJoined?: { readonly source: number; readonly options: AddTrackOptions };
}

export interface FrameReport {
  readonly frames: number;
  readonly width: number;
  readonly height: number;
  readonly colour: Colour;
  /** Longest time without a frame since the last reset, including the current wait, in ms. */
  readonly maxGapMs: number;
}

export interface OutboundReport {
  readonly rid: Encoding | null;
  readonly active: boolean;
  readonly bytesSent: number;
  readonly framesEncoded: number;
  readonly frameWidth: number | null;
  readonly mimeType: string;
}

export interface InboundReport {
  readonly kind: string;
  readonly mimeType: string;
  readonly framesDecoded: number;
  readonly framesDropped: number;
  readonly freezeCount: number;
  readonly packetsLost: number;
  readonly packetsReceived: number;
  /** Total seconds that samples or frames waited in the browser's jitter buffer, and how many have left it. */
  readonly jitterBufferDelay: number;
  readonly jitterBufferEmittedCount: number;
  readonly pliCount: number;
  readonly nackCount: number;
}

export interface ConnectionReport {
  readonly signalingState: string;
  readonly connectionState: string;
  readonly iceConnectionState: string;
  /** `kind/direction` of each transceiver, in order. */
  readonly transceivers: readonly string[];
  readonly mids: Readonly<Record<string, string>>;
}

export interface TransportReport {
  readonly dtlsState: string;
  readonly iceState: string;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** The browser's estimate of its available bitrate, bit/s; null before the first one. */
  readonly outgoingBps: number | null;
  readonly roundTripMs: number | null;
  /** `state/nominated` of each candidate pair. */
  readonly pairs: readonly string[];
}

export interface RemoteTrackReport {
  readonly trackId: string;
  readonly endpointId: string;
  readonly metadata: unknown;
  readonly rawMetadata: unknown;
  readonly metadataError: string | null;
  readonly simulcast: { enabled: boolean; activeEncodings: Encoding[]; disabledEncodings: Encoding[] } | null;
  readonly kind: string | null;
  readonly hasStream: boolean;
}

export interface RemotePeerReport {
  readonly id: string;
  readonly metadata: unknown;
  readonly rawMetadata: unknown;
  readonly metadataError: string | null;
  readonly trackIds: readonly string[];
}

/** What the page reports as it happens; `at` is wall-clock time in fractional ms, comparable between pages. */
export type PageEvent = { readonly at: number } & (
  | { readonly type: 'connecting' | 'socketOpen' | 'authSuccess' | 'disconnected' | 'socketError' }
  | { readonly type: 'socketClose'; readonly code: number; readonly reason: string }
  | { readonly type: 'authError' | 'joinError'; readonly reason: string }
  | { readonly type: 'joined'; readonly id: string; readonly peers: readonly RemotePeerReport[] }
  | { readonly type: 'peerJoined' | 'peerUpdated' | 'peerLeft'; readonly peer: RemotePeerReport }
  | { readonly type: 'trackAdded' | 'trackReady' | 'trackUpdated' | 'trackRemoved'; readonly track: RemoteTrackReport }
  | { readonly type: 'encodingChanged'; readonly trackId: string; readonly encoding: Encoding; readonly reason: string }
  | { readonly type: 'voiceActivity'; readonly trackId: string; readonly status: string }
  | { readonly type: 'bandwidthEstimation'; readonly bps: number }
  | {
      readonly type: 'firstFrame' | 'frameSize';
      readonly trackId: string;
      readonly width: number;
      readonly height: number;
    }
  | { readonly type: 'frameColour'; readonly trackId: string; readonly colour: Colour }
  | { readonly type: 'sent' | 'received'; readonly event: string; readonly data: unknown }
  | { readonly type: 'addFailed'; readonly reason: string }
);

export interface PageDriver {
  /** Creates a picture or a tone and returns its number. */
  createSource(options: SourceOptions): number;
  connect(options: ConnectOptions): void;
  /** Resolves with the track id once the SDK reports the track as negotiated. */
  addTrack(source: number, options?: AddTrackOptions): Promise<string>;
  /** Adds several in the same tick; resolves with their ids when all are negotiated. */
  addTracks(sources: readonly number[], options?: AddTrackOptions): Promise<string[]>;
  /** Adds a track and returns its id at once, while negotiation has only begun. The connection must be idle. */
  addTrackNow(source: number, options?: AddTrackOptions): string;
  replaceTrack(trackId: string, source: number | null, metadata?: unknown): Promise<void>;
  removeTrack(trackId: string): Promise<void>;
  /** Adds, replaces and removes without a pause in between; resolves when all are done. */
  addReplaceRemove(first: number, second: number): Promise<string>;
  /** Mutes and unmutes as newer clients do: the sender runs dry, and the server is notified. */
  muteSender(trackId: string): Promise<void>;
  unmuteSender(trackId: string): Promise<void>;
  /** Updates the track's metadata as soon as an offer with it was sent, before the answer. */
  addAndUpdateWhileOffered(source: number, first: unknown, second: unknown): Promise<string>;
  /** Sets `track.enabled`, the usual way to mute. */
  setEnabled(trackId: string, enabled: boolean): void;
  localTrackIds(): string[];
  updatePeerMetadata(metadata: unknown): void;
  updateTrackMetadata(trackId: string, metadata: unknown): void;
  setTarget(trackId: string, encoding: Encoding): void;
  enableEncoding(trackId: string, encoding: Encoding): void;
  disableEncoding(trackId: string, encoding: Encoding): void;
  setTrackBandwidth(trackId: string, kbps: number): Promise<boolean>;
  setEncodingBandwidth(trackId: string, encoding: Encoding, kbps: number): Promise<boolean>;
  leave(): void;
  disconnect(): void;
  /** Closes the signalling socket under the SDK, as a broken network would. */
  closeSocket(): void;
  /** Sends frames on the signalling socket: text unchanged, or bytes. */
  sendRaw(frame: string | readonly number[]): void;
  /** Sends a media event with exactly this text. */
  sendMediaEvent(text: string): void;
  /** From now on reports only what ends the connection, because a flood would drown the page and the test. */
  reportLossesOnly(): void;
  /** Resolves when `count` more frames of the track were decoded. */
  awaitFrames(trackId: string, count: number): Promise<FrameReport>;
  frames(trackId: string): FrameReport;
  resetGap(trackId: string): void;
  /** Returns the loudest frequency of a remote sound and its level (0..255). */
  tone(trackId: string): Promise<{ hz: number; level: number }>;
  inbound(trackId: string): Promise<InboundReport | null>;
  outbound(trackId: string): Promise<OutboundReport[]>;
  connection(): ConnectionReport | null;
  transport(): Promise<TransportReport | null>;
  remoteTracks(): RemoteTrackReport[];
  remotePeers(): RemotePeerReport[];
}

export type DriverCall = keyof PageDriver;

declare global {
  interface Window {
    driver: PageDriver;
    /** Provided by the harness. */
    reportToTest(event: PageEvent): Promise<void>;
  }
}
