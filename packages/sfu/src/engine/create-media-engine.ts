import { randomBytes } from 'node:crypto';
import { type Log, silentLog } from '@bloom/log';
import { createCertificate, type DtlsCertificate, type RelayRoute, TcpAcceptor } from '@bloom/webrtc';
import type {
  EngineStats,
  MediaEndpoint,
  MediaEngine,
  MediaRoom,
  MediaRoomEvent,
  ProfileAction,
} from '../media-engine.js';
import { MediaError } from '../media-error.js';
import { InProcessEngine } from './in-process-engine.js';
import { MediaCore } from './media-core.js';
import { MediaWorkers } from './media-workers.js';
import type { WorkerSettings } from './worker-protocol.js';

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
  /** Worker threads; 0, the default, keeps the media in the calling thread. */
  workers?: number;
  /** The compiled worker; default: the one beside this module. */
  workerEntry?: URL;
}

interface RelayedEngine extends MediaEngine {
  relayRoute(username: string): RelayRoute | undefined;
}

/** The whole media plane. Rejects with the `WebrtcError` of the socket that cannot be bound (`NO_FREE_PORT`, `BAD_ADDRESS`). */
export async function createMediaEngine(options: MediaEngineOptions): Promise<MediaEngine> {
  const certificate = options.certificate ?? (await createCertificate());
  const nonceSecret = randomBytes(32);
  const log = options.log ?? silentLog;
  const { listenIp, announcedIp, portRange } = options;
  const settings = { listenIp, announcedIp, portRange, certificate, nonceSecret };

  let engine: RelayedEngine | undefined;
  const tcp = await listenTcp(options, nonceSecret, (username) => engine?.relayRoute(username));
  const endpoint = {
    address: announcedIp,
    ...(tcp === undefined ? {} : { tcpPort: tcp.port }),
    fingerprint: certificate.fingerprint,
  };
  try {
    engine = await openEngine(options, settings, endpoint, log);
  } catch (error) {
    await tcp?.close();
    throw error;
  }
  return tcp === undefined ? engine : new TcpFrontedEngine(engine, tcp);
}

async function openEngine(
  { workers = 0, workerEntry }: MediaEngineOptions,
  settings: WorkerSettings & { nonceSecret: Buffer },
  endpoint: Omit<MediaEndpoint, 'port'>,
  log: Log,
): Promise<RelayedEngine> {
  if (workers > 0) {
    const entry = workerEntry === undefined ? {} : { entry: workerEntry };
    return MediaWorkers.start({ workers, settings, endpoint, log, ...entry });
  }
  const core = await MediaCore.open({ ...settings, log });
  return new InProcessEngine(core, { ...endpoint, port: core.port.port });
}

/** The TCP listener of the relay, when one is asked for. */
function listenTcp(
  { tcpPort, listenIp }: Pick<MediaEngineOptions, 'tcpPort' | 'listenIp'>,
  nonceSecret: Buffer,
  route: RelayedEngine['relayRoute'],
): Promise<TcpAcceptor | undefined> {
  if (tcpPort === undefined) return Promise.resolve(undefined);
  return TcpAcceptor.listen({ listenAddress: listenIp, port: tcpPort, nonceSecret, route });
}

/** An engine and the TCP listener in front of it, closed together. */
class TcpFrontedEngine implements MediaEngine {
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

  async profileWorker(worker: number, action: ProfileAction): Promise<string | undefined> {
    if (this.engine.profileWorker === undefined) {
      throw new MediaError('CLOSED', `there is no media worker ${worker}: the media runs in the main thread`);
    }
    return await this.engine.profileWorker(worker, action);
  }

  async close(): Promise<void> {
    await this.tcp.close();
    await this.engine.close();
  }
}
