import { randomBytes } from 'node:crypto';
import { type Log, silentLog } from '@bloom/log';
import { createCertificate, type DtlsCertificate, TcpAcceptor } from '@bloom/webrtc';
import type { EngineStats, MediaEndpoint, MediaEngine, MediaRoom, MediaRoomEvent } from '../media-engine.js';
import { InProcessEngine } from './in-process-engine.js';
import { MediaCore } from './media-core.js';

export interface MediaEngineOptions {
  /** Address the UDP and TCP sockets bind to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenIp: string;
  /** Address clients reach us at (`JF_WEBRTC_TURN_IP`). */
  announcedIp: string;
  /** UDP ports, one per worker out of the range (`JF_WEBRTC_TURN_PORT_RANGE`); `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Relay over TCP (`JF_WEBRTC_TURN_TCP_PORT`); absent = none, 0 lets the system choose. */
  tcpPort?: number;
  /** Shared by all transports; made anew when absent. */
  certificate?: DtlsCertificate;
  log?: Log;
}

interface RelayedEngine extends MediaEngine {
  relayRoute: InProcessEngine['relayRoute'];
}

/**
 * The media plane in this thread. Rejects with the `WebrtcError` of the socket that cannot be bound (`NO_FREE_PORT`,
 * `BAD_ADDRESS`).
 */
export async function createMediaEngine(options: MediaEngineOptions): Promise<MediaEngine> {
  const certificate = options.certificate ?? (await createCertificate());
  const nonceSecret = randomBytes(32);
  const log = options.log ?? silentLog;
  const { listenIp, announcedIp, portRange } = options;
  const core = await MediaCore.open({ listenIp, announcedIp, portRange, certificate, nonceSecret, log });
  let engine: InProcessEngine | undefined;
  const tcp = await listenTcp(options, nonceSecret, (username) => engine?.relayRoute(username)).catch(async (error) => {
    await core.close();
    throw error;
  });
  const endpoint: MediaEndpoint = {
    address: announcedIp,
    port: core.port.port,
    ...(tcp === undefined ? {} : { tcpPort: tcp.port }),
    fingerprint: certificate.fingerprint,
  };
  engine = new InProcessEngine(core, endpoint);
  return tcp === undefined ? engine : new TcpFrontedEngine(engine, tcp);
}

/** The TCP listener of the relay, when one is asked for. */
export function listenTcp(
  { tcpPort, listenIp }: Pick<MediaEngineOptions, 'tcpPort' | 'listenIp'>,
  nonceSecret: Buffer,
  route: InProcessEngine['relayRoute'],
): Promise<TcpAcceptor | undefined> {
  if (tcpPort === undefined) return Promise.resolve(undefined);
  return TcpAcceptor.listen({ listenAddress: listenIp, port: tcpPort, nonceSecret, route });
}

/** An engine and the TCP listener in front of it, closed together. */
export class TcpFrontedEngine implements MediaEngine {
  constructor(
    private readonly engine: RelayedEngine,
    private readonly tcp: TcpAcceptor,
  ) {}

  openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom> {
    return this.engine.openRoom(roomId, onEvent);
  }

  stats(): Promise<EngineStats> {
    return this.engine.stats();
  }

  async close(): Promise<void> {
    await this.tcp.close();
    await this.engine.close();
  }
}
