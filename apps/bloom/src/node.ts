import { createActorSystem } from '@bloom/actors';
import { HlsService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import {
  createHttpApi,
  startHttpListener,
  type Fallback,
  type HealthReport,
  type HttpListener,
  type OnStep,
} from '@bloom/http-api';
import type { Resolve4 } from '@bloom/discovery';
import type { Log } from '@bloom/log';
import { Metrics, startMetricsServer } from '@bloom/metrics';
import { countNotifications, MetricsReporter, NotificationBus, ServerSocket, Webhooks } from '@bloom/notifications';
import { createRooms, type ComponentKind, type RoomService, type Rooms } from '@bloom/rooms';
import { createMediaEngine, type MediaEngine } from '@bloom/sfu';
import { createPeerSession, createPeerSocketServer, PEER_SOCKET_PATH } from '@bloom/signaling';
import { Closing } from './closing.js';
import { builtInKinds, openPhones, openRecordings } from './components.js';
import { joinCluster, type Cluster } from './cluster.js';
import { type ServedFiles, servedFiles } from './served-files.js';
import { openInspection } from './inspection.js';
import { metricsReport } from './metrics-report.js';
import { MediaTraffic } from './media-traffic.js';
import { registerNodeFunctions } from './node-functions.js';
import { pageFiles } from './page.js';
import { version } from './version.js';
import { warmUpRooms } from './warm-up.js';

export { stuckThreads } from '@bloom/sfu';

const SERVER_SOCKET_PATH = '/socket/server/websocket';
/** What a receiver of webhooks may take for the last events of a node. */
const WEBHOOK_GRACE_MS = 5_000;
/** What uploads of recordings may take that are on their way; files that are not up by then stay on the disk. */
const UPLOAD_GRACE_MS = 10_000;
/** What answers and close frames may take to leave. */
const CONNECTION_GRACE_MS = 1_000;
const DRAIN_POLL_MS = 200;

export interface NodeOptions {
  settings: Settings;
  log: Log;
  /** Kinds of components beyond the built-in ones. */
  componentKinds?: readonly ComponentKind[];
  /** Keeps the media in this thread, whatever `JF_MEDIA_WORKERS` says: workers run the built code only. */
  mediaInProcess?: boolean;
  /** Default: the resolvers of the system. */
  resolve4?: Resolve4;
}

export interface RunningNode {
  /** `http(s)://<ip>:<port>` */
  readonly url: string;
  readonly metricsUrl: string;
  /** The rooms of this node. */
  readonly rooms: Rooms;
  /** undefined without `JF_DIST_ENABLED`. */
  readonly cluster: Cluster | undefined;
  /** Whether `GET /` serves the page to try Bloom with. */
  readonly hasPage: boolean;
  /**
   * No new rooms; waits for the running ones up to the drain timeout, then ends each as `DELETE` does; sends what is
   * pending; closes everything. Idempotent.
   */
  close(): Promise<void>;
}

/**
 * Starts a node in this process. Whatever it opened is closed again when something cannot be had.
 * @throws HttpListenError, MetricsListenError, WebrtcError (`NO_FREE_PORT`, `BAD_ADDRESS`)
 */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const closing = new Closing(options.log);
  try {
    return await start(options, closing);
  } catch (error) {
    await closing.run();
    throw error;
  }
}

async function start(options: NodeOptions, closing: Closing): Promise<RunningNode> {
  const { settings, log, componentKinds = [] } = options;
  const metrics = new Metrics({ tickSeconds: settings.metrics.roomIntervalMs / 1_000 });
  const { ip, port } = settings.metrics;
  const metricsServer = await startMetricsServer({ metrics, ip, port });
  closing.last('metrics listener', () => metricsServer.close());

  // While the media workers start this thread has nothing else to do.
  const warm = options.mediaInProcess
    ? undefined
    : warmUpRooms().catch((error: unknown) => log.warn('node.warm_up_failed', { error }));
  const engine = await openEngine(options);
  closing.last('media engine', () => engine.close());
  await warm;
  const system = createActorSystem({ log });
  closing.last('actors', () => system.close());

  const bus = new NotificationBus(log);
  const stopCounting = countNotifications(bus, metrics);
  closing.last('counters', stopCounting);
  const webhooks = new Webhooks({ bus, log, metrics, ...settings.webhooks });
  closing.last('webhooks', () => webhooks.close({ timeoutMs: WEBHOOK_GRACE_MS }));

  const hls = new HlsService({
    resourcesPath: settings.resourcesPath,
    s3Endpoint: settings.recording.s3Endpoint,
    notify: (notification) => bus.publish(notification),
    hold: (roomId) => webhooks.hold(roomId),
    log,
  });
  closing.last('streams', () => hls.settled());
  closing.last('tidying of streams', hls.tidy());

  const recordings = openRecordings(settings, log, metrics);
  closing.last('recordings', () => recordings.close({ timeoutMs: UPLOAD_GRACE_MS }));
  const phones = openPhones(settings);
  closing.last('phones', () => phones?.settled());

  let cluster: Cluster | undefined;
  const rooms = createRooms({
    system,
    engine,
    createSession: createPeerSession,
    events: (notification, { webhookUrl, requestId }) => {
      if (notification.type === 'roomCreated' && webhookUrl !== null)
        webhooks.register(notification.roomId, webhookUrl);
      // The other nodes learn of a room before anybody is told about it.
      cluster?.rooms.observe(notification, requestId);
      if (requestId !== undefined) system.note(requestId, 'notifications', notification.type);
      bus.publish(notification);
      if (notification.type === 'roomDeleted' || notification.type === 'roomCrashed')
        hls.roomEnded(notification.roomId);
      metrics.load(rooms.load());
    },
    log,
    address: settings.http.host,
    secretKeyBase: settings.http.secretKeyBase,
    webrtcEnabled: settings.webrtc !== null,
    componentKinds: [...builtInKinds(settings, recordings, phones), hls.kind, ...componentKinds],
  });

  recordings.collectGarbage(async () => new Set(rooms.views().map(({ id }) => id)));

  const serverSocket = new ServerSocket({ bus, token: settings.http.apiToken, log, metrics });
  const traffic = new MediaTraffic(engine, metrics);
  closing.last('intervals', startIntervals({ settings, metrics, traffic }));
  const reporter = new MetricsReporter({
    bus,
    log,
    intervalMs: settings.metrics.webrtcIntervalMs,
    report: async () => metricsReport(await rooms.reports()),
    wanted: () => serverSocket.wantsMetrics || (cluster?.metricsWanted() ?? false),
  });
  closing.last('metrics reporter', () => reporter.close());

  const health = healthOf(settings, () => cluster);
  if (settings.cluster !== null) {
    // A member is given rooms at once, and their clients would find nobody listening yet.
    rooms.drain();
    cluster = await joinCluster({
      settings: settings.cluster,
      system,
      rooms,
      secretKeyBase: settings.http.secretKeyBase,
      bus,
      metrics,
      log,
      wantsMetrics: () => serverSocket.wantsMetrics,
      ...(options.resolve4 === undefined ? {} : { resolve4: options.resolve4 }),
    });
    const joined = cluster;
    closing.last('cluster', () => joined.close());
    registerNodeFunctions(joined, rooms, health);
    const inspection = await openInspection({ settings, system, cluster, rooms, engine, log });
    closing.last('inspection', () => inspection?.close());
  }
  const service = cluster?.rooms ?? rooms;
  const files = servedFiles({ settings, system, hls, cluster });

  const page = settings.profile === 'development' ? pageFiles() : undefined;
  const listener = await openListener({
    settings,
    log,
    metrics,
    serverSocket,
    rooms: service,
    files,
    health,
    page,
    onStep: ({ requestId, what, ranMs }) => system.note(requestId, 'http', what, ranMs),
    closing,
  });
  rooms.undrain();
  closing.last('rooms', () => endRooms(rooms, settings, log));

  return {
    url: listener.url,
    metricsUrl: metricsServer.url,
    rooms,
    cluster,
    hasPage: page !== undefined,
    close: () => closing.run(),
  };
}

function openEngine({ settings, log, mediaInProcess = false }: NodeOptions): Promise<MediaEngine> {
  const workers = mediaInProcess ? 0 : settings.mediaWorkers;
  if (settings.webrtc === null) {
    // No client may reach the media plane: it is there for components only, on loopback.
    const portRange = { min: 0, max: 0 };
    return createMediaEngine({ listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange, workers, log });
  }
  const { turnListenIp, turnIp, turnPortRange, turnTcpPort } = settings.webrtc;

  return createMediaEngine({
    listenIp: turnListenIp,
    announcedIp: turnIp,
    portRange: turnPortRange,
    ...(turnTcpPort === null ? {} : { tcpPort: turnTcpPort }),
    workers,
    log,
  });
}

interface ListenerParts {
  settings: Settings;
  log: Log;
  metrics: Metrics;
  serverSocket: ServerSocket;
  /** Of this node, or of the whole cluster. */
  rooms: RoomService;
  files: ServedFiles;
  health: () => HealthReport;
  page: Fallback | undefined;
  onStep: OnStep;
  closing: Closing;
}

async function openListener({
  settings,
  log,
  metrics,
  serverSocket,
  rooms,
  files,
  health,
  page,
  onStep,
  closing,
}: ListenerParts): Promise<HttpListener> {
  const { http, profile } = settings;
  const handler = createHttpApi({
    rooms,
    ...files,
    onStep,
    health,
    log,
    metrics,
    settings: { apiToken: http.apiToken, publicMediaFiles: http.publicMediaFiles, profile, version },
    ...(page === undefined ? {} : { fallback: page }),
  });
  const peerSockets = createPeerSocketServer({ rooms, log });
  const listener = await startHttpListener({
    handler,
    upgrades: {
      [PEER_SOCKET_PATH]: (request, socket, head) => peerSockets.handleUpgrade(request, socket, head),
      [SERVER_SOCKET_PATH]: (request, socket, head) => serverSocket.handleUpgrade(request, socket, head),
    },
    ip: http.ip,
    port: http.port,
    tls: http.tls,
    checkOrigin: http.checkOrigin,
    publicHost: http.host,
    log,
  }).catch(async (error: unknown) => {
    await serverSocket.close();
    peerSockets.close();
    throw error;
  });
  closing.last('peer sockets', () => peerSockets.close());
  closing.last('HTTP listener', () => listener.close({ graceMs: CONNECTION_GRACE_MS }));
  closing.last('server sockets', () => serverSocket.close());

  return listener;
}

function healthOf({ gitCommit, cluster: settings }: Settings, cluster: () => Cluster | undefined): () => HealthReport {
  const startedAt = performance.now();

  return () => ({
    status: 'UP',
    uptime: Math.floor((performance.now() - startedAt) / 1_000),
    version,
    gitCommit,
    distribution: {
      enabled: settings !== null,
      ...(cluster()?.health() ?? { nodeStatus: 'DOWN' as const, nodesInCluster: 0 }),
    },
  });
}

function startIntervals(parts: { settings: Settings; metrics: Metrics; traffic: MediaTraffic }): () => void {
  const { settings, metrics, traffic } = parts;
  const tick = setInterval(() => metrics.tick(), settings.metrics.roomIntervalMs);
  const sample = setInterval(() => void traffic.sample(), settings.metrics.webrtcIntervalMs);
  for (const timer of [tick, sample]) timer.unref();

  return () => {
    clearInterval(tick);
    clearInterval(sample);
  };
}

async function endRooms(rooms: Rooms, { drainTimeout }: Settings, log: Log): Promise<void> {
  rooms.drain(true);
  const until = performance.now() + drainTimeout * 1_000;
  if (drainTimeout > 0 && rooms.load().rooms > 0) {
    log.info('node.draining', { rooms: rooms.load().rooms, timeoutSeconds: drainTimeout });
  }
  while (rooms.load().rooms > 0 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  await rooms.deleteAll();
}
