import { createActorSystem, type ActorSystem } from '@bloom/actors';
import { HlsService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import type { Resolve4 } from '@bloom/discovery';
import { type LocalRecordings, offerFiles } from '@bloom/files';
import type { Inspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import { Metrics, startMetricsServer } from '@bloom/metrics';
import { countNotifications, MetricsReporter, NotificationBus, ServerSocket, Webhooks } from '@bloom/notifications';
import { Processes } from '@bloom/processes';
import { LocalRooms, Rooms, type ComponentKind } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import { createPeerSession } from '@bloom/signaling';
import { createHttpSession } from '@bloom/whip';
import { sleep } from '@bloom/time';
import type { Certificate } from './certificate.js';
import { Closing } from './closing.js';
import { asking, clusterView } from './cluster-view.js';
import { joinCluster, type Cluster } from './cluster.js';
import { builtInKinds, openPhones, openRecordings } from './components.js';
import { healthOf, openListener } from './http.js';
import { answerAlone, openInspection, openLocalSocket } from './inspection.js';
import { type Media, MediaTraffic, openEngine } from './media.js';
import { metricsReport } from './metrics-report.js';
import { nodeControl } from './node-control.js';
import { registerNodeFunctions } from './node-functions.js';
import { pageFiles } from './page.js';
import { collectQuality, countMeasure } from './quality.js';
import type { ClusterError } from './own-name.js';
import { liveStreams, localRecordings, servedFiles } from './served-files.js';
import { VERSION } from './version.js';
import { warmUpRooms } from './warm-up.js';

export { stuckThreads } from '@bloom/sfu';

/** Time allowed for webhook receivers to accept a node's last events. */
const WEBHOOK_GRACE_MS = 5_000;
/** Time allowed for running uploads of recordings. Files that are not uploaded by then stay on disk. */
const UPLOAD_GRACE_MS = 10_000;
const DRAIN_POLL_MS = 200;

export interface NodeOptions {
  settings: Settings;
  log: Log;
  /** Kinds of components in addition to the built-in ones. */
  componentKinds?: readonly ComponentKind[];
  /** The media plane, if already started; closed with the node. */
  media?: Promise<Media>;
  /** Maximum number of HTTP connections; undefined: the documented limit. */
  maxConnections?: number | undefined;
  /** Keeps media in this thread and ignores `JF_MEDIA_WORKERS`, since workers run only built code. */
  mediaInProcess?: boolean;
  /** Default: the resolvers of the system. */
  resolve4?: Resolve4;
  /** Called once, possibly during start-up, if the cluster refuses this node: the node must exit. */
  onRefused?: (error: ClusterError) => void;
}

export interface RunningNode {
  /** `http(s)://<ip>:<port>` */
  readonly url: string;
  readonly metricsUrl: string;
  /** The rooms of this node. */
  readonly rooms: LocalRooms;
  /** undefined without `JF_DIST_ENABLED`. */
  readonly cluster: Cluster | undefined;
  /** undefined without HTTPS. */
  readonly certificate: Certificate | undefined;
  /** True if `GET /` serves the dashboard. */
  readonly hasPage: boolean;
  /**
   * Refuses new rooms, waits up to the drain timeout for the running ones, ends the rest as `DELETE` does, sends
   * pending messages and closes everything. Idempotent.
   */
  close(): Promise<void>;
}

/**
 * Starts a node in this process. On failure, everything opened so far is closed again.
 * @throws HttpListenError
 * @throws MetricsListenError
 * @throws WebrtcError NO_FREE_PORT or BAD_ADDRESS
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
  const { settings, log } = options;
  const { roomIntervalMs, compat } = settings.metrics;
  const metrics = new Metrics({ tickSeconds: roomIntervalMs / 1_000, compat });
  const { ip, port } = settings.metrics;
  const workers = options.mediaInProcess === true ? 0 : settings.mediaWorkers;
  const media = options.media ?? openEngine({ settings, workers, log });
  // Register now: the engine may open while something else fails. Its own failure is reported where it is awaited.
  closing.onClose('media engine', () =>
    media.then(
      async (opened) => {
        opened.certificate?.close();
        await opened.engine.close();
      },
      () => undefined,
    ),
  );
  const metricsServer = await startMetricsServer({ metrics, ip, port });
  closing.onClose('metrics listener', () => metricsServer.close());

  metrics.quality.buildInfo({ version: VERSION, commit: settings.gitCommit });
  const { engine, certificate } = await warmMedia(options, media);
  const system = createActorSystem({ log });
  closing.onClose('actors', () => system.close());

  const bus = new NotificationBus(log);
  closing.onClose('counters', countNotifications(bus, metrics));
  const webhooks = new Webhooks({ bus, log, metrics, ...settings.webhooks });
  closing.onClose('webhooks', () => webhooks.close({ timeoutMs: WEBHOOK_GRACE_MS }));

  let cluster: Cluster | undefined;
  const { local, hls, recordings } = openRooms({
    options,
    closing,
    metrics,
    engine,
    system,
    bus,
    webhooks,
    cluster: () => cluster,
  });

  const { resourcesPath } = settings;
  collectQuality({ metrics, engine, rooms: local, system, webhooks, resourcesPath });
  const serverSocket = new ServerSocket({ bus, token: settings.http.apiToken, log, metrics });
  closing.onClose('intervals', startIntervals({ settings, metrics, traffic: new MediaTraffic(engine, metrics) }));
  const reporter = new MetricsReporter({
    bus,
    log,
    intervalMs: settings.metrics.webrtcIntervalMs,
    report: async () => metricsReport(await local.reports()),
    wanted: () => serverSocket.wants('metrics') || (cluster?.metricsWanted() ?? false),
  });
  closing.onClose('metrics reporter', () => reporter.close());

  let started = false;
  let inspection: Inspection | undefined;
  const ask = asking(() => inspection);
  const control = nodeControl({ rooms: local, engine, system, started: () => started, ask });
  metrics.readNode(() => ({ ready: control.notReady() === undefined, draining: local.draining }));
  const health = healthOf(settings, () => cluster, local);
  const own = { streams: liveStreams(hls), recordings };
  if (settings.cluster !== null) {
    // Members place rooms here immediately: accept none until the listener is up.
    local.drain('starting');
    const localServer = await openLocalSocket(settings, settings.cluster.nodeName, log);
    closing.onClose('local socket', () => void localServer?.close());
    offerFiles(system, own);
    const joined = await joinCluster({
      settings: settings.cluster,
      system,
      rooms: local,
      bus,
      metrics,
      log,
      wants: (kind) => serverSocket.wants(kind),
      localServer,
      onRefused: options.onRefused,
      ...(options.resolve4 === undefined ? {} : { resolve4: options.resolve4 }),
    });
    cluster = joined;
    closing.onClose('cluster', () => joined.close());
    registerNodeFunctions(joined, local, health);
  }
  const alone = cluster === undefined ? await answerAlone(settings, system, log) : undefined;
  closing.onClose('tools', () => alone?.remote.close());
  const reached = cluster ?? alone;
  if (reached !== undefined) {
    inspection = await openInspection({ settings, system, reached, rooms: local, engine, log });
    closing.onClose('inspection', () => inspection?.close());
  }

  const files = servedFiles({ system, log, own, cluster });
  closing.onClose('files', () => files.close());
  const page = settings.dashboard ? pageFiles() : undefined;
  const listener = await openListener({
    settings,
    log,
    metrics,
    serverSocket,
    rooms: new Rooms({
      system,
      local,
      cluster: cluster?.rooms,
      log,
      secretKeyBase: settings.http.secretKeyBase,
    }),
    files,
    health,
    node: control,
    cluster: clusterView(ask),
    page,
    maxConnections: options.maxConnections,
    onStep: ({ requestId, what, ranMs }) => system.note(requestId, 'http', what, ranMs),
    closing,
  });
  certificate?.onChange((tls) => listener.setTls(tls));
  local.undrain('starting');
  started = true;
  closing.onClose('rooms', () => endRooms(local, settings, log));

  return {
    url: listener.url,
    metricsUrl: metricsServer.url,
    rooms: local,
    cluster,
    certificate,
    hasPage: page !== undefined,
    close: () => closing.run(),
  };
}

/** Waits for the media plane while the control plane warms up. */
async function warmMedia({ log, mediaInProcess = false }: NodeOptions, media: Promise<Media>): Promise<Media> {
  const warm = mediaInProcess
    ? undefined
    : warmUpRooms().catch((error: unknown) => log.warn('node.warm_up_failed', { error }));
  const opened = await media;
  await warm;

  return opened;
}

interface RoomParts {
  options: NodeOptions;
  closing: Closing;
  metrics: Metrics;
  engine: MediaEngine;
  system: ActorSystem;
  bus: NotificationBus;
  webhooks: Webhooks;
  cluster: () => Cluster | undefined;
}

/** Opens the rooms of this node and the services behind their components. */
function openRooms(parts: RoomParts): { local: LocalRooms; hls: HlsService; recordings: LocalRecordings } {
  const { options, closing, metrics, engine, system, bus, webhooks, cluster } = parts;
  const { settings, log, componentKinds = [] } = options;
  const processes = new Processes({ log });
  const kept = localRecordings(settings, (id) => hls.isLive(id));
  const hls = new HlsService({
    resourcesPath: settings.resourcesPath,
    s3Endpoint: settings.recording.s3Endpoint,
    beginRecording: (id) => kept.begin(id),
    endRecording: (id) => kept.end(id),
    notify: (notification) => bus.publish(notification),
    hold: (roomId) => webhooks.hold(roomId),
    onPicturesLeftOut: (pictures) => metrics.picturesLeftOut(pictures),
    processes,
    log,
  });
  closing.onClose('streams', () => hls.settled());
  closing.onClose('tidying of streams', hls.tidy());
  const recordings = openRecordings(settings, log, metrics);
  closing.onClose('recordings', () => recordings.close({ timeoutMs: UPLOAD_GRACE_MS }));
  const phones = openPhones(settings, processes);
  closing.onClose('phones', () => phones?.settled());

  const local = new LocalRooms({
    system,
    engine,
    createSession: (client) => (client.client === 'http' ? createHttpSession(client) : createPeerSession(client)),
    events: (notification, { webhookUrl, requestId }) => {
      const { type, roomId } = notification;
      if (type === 'roomCreated' && webhookUrl !== null) webhooks.register(roomId, webhookUrl);
      // The other members must learn of a room before any client or webhook does.
      cluster()?.rooms.observe(notification, requestId);
      if (requestId !== undefined) system.note(requestId, 'notifications', type);
      bus.publish(notification);
      if (type === 'roomDeleted' || type === 'roomCrashed') hls.roomEnded(roomId);
      metrics.load(local.load());
    },
    measure: (measure) => countMeasure(metrics, measure),
    log,
    address: settings.http.host,
    secretKeyBase: settings.http.secretKeyBase,
    webrtcEnabled: settings.webrtc !== null,
    componentKinds: [...builtInKinds(settings, { recordings, phones, processes }), hls.kind, ...componentKinds],
  });
  recordings.collectGarbage(async () => new Set(local.views().map(({ id }) => id)));

  return { local, hls, recordings: kept };
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

async function endRooms(rooms: LocalRooms, { drainTimeout }: Settings, log: Log): Promise<void> {
  rooms.drain('closing');
  const until = performance.now() + drainTimeout * 1_000;
  if (drainTimeout > 0 && rooms.load().rooms > 0) {
    log.info('node.draining', { rooms: rooms.load().rooms, timeoutSeconds: drainTimeout });
  }
  while (rooms.load().rooms > 0 && performance.now() < until) {
    await sleep(DRAIN_POLL_MS);
  }
  await rooms.deleteAll();
}
