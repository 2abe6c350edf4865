/** The public listener of a node: the HTTP API, both websockets and the dashboard. */
import {
  createHttpApi,
  openHttpListener,
  type ClusterView,
  type Fallback,
  type HealthReport,
  type HttpApi,
  type HttpListener,
  type HttpListenerOptions,
  type NodeControl,
  type OnStep,
} from '@bloom/http-api';
import { PUBLIC_API_TOKEN, type Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { TrustedProxies } from '@bloom/net';
import type { ServerSocket } from '@bloom/notifications';
import { Passes, type PathChecks, type RoomHost, type RoomService } from '@bloom/rooms';
import { openPeerSocketServer, PEER_SOCKET_PATH } from '@bloom/signaling';
import { bookFiles } from './book.js';
import type { Closing } from './closing.js';
import type { Cluster } from './cluster.js';
import { type LivekitModule, openLivekit } from './livekit.js';
import type { ServedFiles } from './served-files.js';
import { VERSION } from './welcome.js';

const SERVER_SOCKET_PATH = '/socket/server/websocket';
/** Time allowed for pending responses and close frames to be sent. */
const CONNECTION_GRACE_MS = 1_000;

export interface ListenerParts {
  settings: Settings;
  log: Log;
  metrics: Metrics;
  serverSocket: ServerSocket;
  /** The rooms of this node or of the whole cluster. */
  rooms: RoomService;
  files: ServedFiles;
  checks: PathChecks;
  health: () => HealthReport;
  node: NodeControl;
  cluster: ClusterView;
  page: Fallback | undefined;
  /** Undefined unless LiveKit's clients are served. */
  livekit: LivekitModule | undefined;
  onStep: OnStep;
  closing: Closing;
  /** Maximum number of connections of all kinds; undefined: the documented limit. */
  maxConnections: number | undefined;
  /** Serves clients of TURN over TLS if they share the port. */
  relay: NonNullable<HttpListenerOptions['relay']>;
}

/** @throws HttpListenError */
export async function openListener(
  parts: ListenerParts,
): Promise<{ listener: HttpListener; closeLivekit: () => Promise<void> }> {
  const { settings, log, metrics, serverSocket, rooms, files, checks, health, node, cluster } = parts;
  const { page, onStep, closing } = parts;
  const { http } = settings;
  const describe = settings.profile === 'development' || settings.dashboard === true;
  const fallback = describe ? bookFiles(page) : page;
  const api = createHttpApi({
    rooms,
    passes: new Passes(http.secretKeyBase),
    ...files,
    onStep,
    checks,
    health,
    node,
    cluster,
    log,
    metrics,
    settings: {
      apiToken: http.apiToken,
      publicToken: { publicHost: http.host, checkOrigin: http.checkOrigin },
      publicMediaFiles: http.publicMediaFiles,
      describe,
      warnOfUnknownFields: settings.profile === 'development',
      version: VERSION,
    },
    publicHost: http.host,
    ...(fallback === undefined ? {} : { fallback }),
    guestPage: page !== undefined,
  });
  const livekit = openLivekit(parts.livekit, { settings, rooms, log });
  const handler: HttpApi =
    livekit === undefined
      ? api
      : (request, response, client) => void (livekit.handle(request, response) || api(request, response, client));
  const peerSockets = openPeerSocketServer({ rooms, log });
  const listener = await openHttpListener({
    handler,
    upgrades: {
      [PEER_SOCKET_PATH]: (upgrade) => peerSockets.handleUpgrade(upgrade),
      [SERVER_SOCKET_PATH]: (upgrade) => serverSocket.handleUpgrade(upgrade),
      ...livekit?.upgrades,
    },
    ...(livekit === undefined
      ? {}
      : { anyOrigin: new Set(Object.keys(livekit.upgrades)), maxHeaderSize: livekit.maxHeaderSize }),
    ip: http.ip,
    port: http.port,
    tls: http.tls,
    checkOrigin: http.checkOrigin,
    publicHost: http.host,
    ...(http.apiToken === PUBLIC_API_TOKEN ? { publicToken: new Set([SERVER_SOCKET_PATH]) } : {}),
    trusted: new TrustedProxies(http.trustedProxies),
    proxyProtocol: http.proxyProtocol,
    ...((settings.webrtc?.turnTlsOnHttp ?? null) === null ? {} : { relay: parts.relay }),
    ...(parts.maxConnections === undefined ? {} : { maxConnections: parts.maxConnections }),
    log,
  }).catch((error: unknown) => {
    peerSockets.close();
    throw error;
  });
  closing.onClose('peer sockets', () => peerSockets.close());
  closing.onClose('HTTP listener', () => listener.close({ graceMs: CONNECTION_GRACE_MS }));
  closing.onClose('server sockets', () => serverSocket.close());

  return { listener, closeLivekit: async () => livekit?.close() };
}

/** Reports the health of the process from this call on. */
export function healthOf(
  { gitCommit, cluster: settings }: Settings,
  cluster: () => Cluster | undefined,
  rooms: Pick<RoomHost, 'draining' | 'mediaReach'>,
): () => HealthReport {
  const startedAt = performance.now();

  return () => ({
    status: 'UP',
    uptime: Math.floor((performance.now() - startedAt) / 1_000),
    version: VERSION,
    gitCommit,
    ...(rooms.draining ? { draining: true } : {}),
    ...(rooms.mediaReach.people === 0 ? {} : { media: rooms.mediaReach }),
    distribution: {
      enabled: settings !== null,
      ...(cluster()?.health() ?? { nodeStatus: 'DOWN' as const, nodesInCluster: 0 }),
    },
  });
}
