/** The public listener of a node: the HTTP API, both websockets and the dashboard. */
import {
  createHttpApi,
  startHttpListener,
  type ClusterView,
  type Fallback,
  type HealthReport,
  type HttpListener,
  type NodeControl,
  type OnStep,
} from '@bloom/http-api';
import { PUBLIC_API_TOKEN, type Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { TrustedProxies } from '@bloom/net';
import type { ServerSocket } from '@bloom/notifications';
import type { RoomService } from '@bloom/rooms';
import { createPeerSocketServer, PEER_SOCKET_PATH } from '@bloom/signaling';
import type { Closing } from './closing.js';
import type { Cluster } from './cluster.js';
import type { ServedFiles } from './served-files.js';
import { VERSION } from './version.js';

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
  health: () => HealthReport;
  node: NodeControl;
  cluster: ClusterView;
  page: Fallback | undefined;
  onStep: OnStep;
  closing: Closing;
  /** Maximum number of connections of all kinds; undefined: the documented limit. */
  maxConnections: number | undefined;
}

/** @throws HttpListenError */
export async function openListener(parts: ListenerParts): Promise<HttpListener> {
  const { settings, log, metrics, serverSocket, rooms, files, health, node, cluster, page, onStep, closing } = parts;
  const { http } = settings;
  const handler = createHttpApi({
    rooms,
    ...files,
    onStep,
    health,
    node,
    cluster,
    log,
    metrics,
    settings: {
      apiToken: http.apiToken,
      publicToken: { publicHost: http.host, checkOrigin: http.checkOrigin },
      publicMediaFiles: http.publicMediaFiles,
      describe: settings.profile === 'development' || settings.dashboard,
      version: VERSION,
    },
    publicHost: http.host,
    ...(page === undefined ? {} : { fallback: page }),
  });
  const peerSockets = createPeerSocketServer({ rooms, log });
  const listener = await startHttpListener({
    handler,
    upgrades: {
      [PEER_SOCKET_PATH]: (...upgrade) => peerSockets.handleUpgrade(...upgrade),
      [SERVER_SOCKET_PATH]: (...upgrade) => serverSocket.handleUpgrade(...upgrade),
    },
    ip: http.ip,
    port: http.port,
    tls: http.tls,
    checkOrigin: http.checkOrigin,
    publicHost: http.host,
    ...(http.apiToken === PUBLIC_API_TOKEN ? { publicToken: new Set([SERVER_SOCKET_PATH]) } : {}),
    trusted: new TrustedProxies(http.trustedProxies),
    proxyProtocol: http.proxyProtocol,
    ...(parts.maxConnections === undefined ? {} : { maxConnections: parts.maxConnections }),
    log,
  }).catch((error: unknown) => {
    peerSockets.close();
    throw error;
  });
  closing.onClose('peer sockets', () => peerSockets.close());
  closing.onClose('HTTP listener', () => listener.close({ graceMs: CONNECTION_GRACE_MS }));
  closing.onClose('server sockets', () => serverSocket.close());

  return listener;
}

/** Reports the health of the process from this call on. */
export function healthOf(
  { gitCommit, cluster: settings }: Settings,
  cluster: () => Cluster | undefined,
  rooms: { readonly draining: boolean },
): () => HealthReport {
  const startedAt = performance.now();

  return () => ({
    status: 'UP',
    uptime: Math.floor((performance.now() - startedAt) / 1_000),
    version: VERSION,
    gitCommit,
    ...(rooms.draining ? { draining: true } : {}),
    distribution: {
      enabled: settings !== null,
      ...(cluster()?.health() ?? { nodeStatus: 'DOWN' as const, nodesInCluster: 0 }),
    },
  });
}
