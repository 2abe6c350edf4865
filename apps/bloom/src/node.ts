import { openActorSystem, type ActorSystem } from '@bloom/actors';
import { HlsService, type RecordingService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import type { Names } from '@bloom/discovery';
import { type LocalRecordings, offerFiles } from '@bloom/files';
import type { Inspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import { Metrics, openMetricsServer } from '@bloom/metrics';
import { countNotifications, MetricsReporter, NotificationBus, ServerSocket, Webhooks } from '@bloom/notifications';
import { Processes } from '@bloom/processes';
import type { Notification } from '@bloom/protocol';
import { PathChecks, RoomHost, RoomRouter } from '@bloom/rooms';
import { startsCold } from '@bloom/sfu';
import type { Certificate } from './certificate.js';
import { Closing } from './closing.js';
import { asking, clusterView } from './cluster-view.js';
import { joinCluster, type Cluster } from './cluster.js';
import { awaitRooms } from './await-rooms.js';
import { builtInKinds, openPhones, openRecordings } from './components.js';
import { healthOf, openListener } from './http.js';
import { answerAlone, openNodeInspection, openLocalSocket } from './inspection.js';
import { type Media, MediaTraffic, openEngine } from './media.js';
import { type LivekitModule, loadLivekit, sessionsOf } from './livekit.js';
import { type LivekitWebhooks, openLivekitWebhooks } from './livekit-webhooks.js';
import { metricsReport } from './metrics-report.js';
import { nodeControl } from './node-control.js';
import { registerNodeFunctions } from './node-functions.js';
import { pageFiles } from './page.js';
import { collectQuality, countMeasure } from './quality.js';
import type { ClusterError } from './own-name.js';
import { rawRecordings } from './raw-recordings.js';
import { liveStreams, localRecordings, type ServedFiles, servedFiles } from './served-files.js';
import { VERSION } from './welcome.js';
import { warmUpRooms } from './warm-up.js';

export { stuckThreads } from '@bloom/sfu';

/** Time allowed for webhook receivers to accept a node's last events. */
const WEBHOOK_GRACE_MS = 5_000;
/** Time allowed for running uploads of recordings. Files that are not uploaded by then stay on disk. */
const UPLOAD_GRACE_MS = 10_000;

export interface NodeOptions {
  settings: Settings;
  log: Log;
  /** The media plane, if already started; closed with the node. */
  media?: Promise<Media>;
  /** Maximum number of HTTP connections; undefined: the documented limit. */
  maxConnections?: number | undefined;
  /** Keeps media in this thread and ignores `JF_MEDIA_WORKERS`, since workers run only built code. */
  mediaInProcess?: boolean;
  /** How members are found; default: as the system resolves names. */
  resolver?: Pick<Names, 'addresses'>;
  /** Called once, possibly during start-up, if the cluster refuses this node: the node must exit. */
  onRefused?: (error: ClusterError) => void;
}

export interface RunningNode {
  /** `http(s)://<ip>:<port>` */
  readonly url: string;
  readonly metricsUrl: string;
  /** The rooms of this node. */
  readonly rooms: RoomHost;
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

/** What the rooms of a node stand on. */
interface Ground {
  metrics: Metrics;
  metricsUrl: string;
  engine: Media['engine'];
  certificate: Certificate | undefined;
  system: ActorSystem;
  bus: NotificationBus;
  webhooks: Webhooks;
}

async function openGround(options: NodeOptions, closing: Closing): Promise<Ground> {
  const { settings, log } = options;
  const { roomIntervalMs, compat, ip, port } = settings.metrics;
  const metrics = new Metrics({ tickSeconds: roomIntervalMs / 1_000, compat });
  metrics.observeProcess();
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
  const metricsServer = await openMetricsServer({ metrics, ip, port });
  closing.onClose('metrics listener', () => metricsServer.close());

  metrics.quality.buildInfo({ version: VERSION, commit: settings.gitCommit });
  const { engine, certificate } = await warmMedia(options, media);
  const system = openActorSystem({ log });
  closing.onClose('actors', () => system.close());

  const bus = new NotificationBus(log);
  closing.onClose('counters', countNotifications(bus, metrics));
  const webhooks = new Webhooks({ bus, log, metrics, ...settings.webhooks });
  closing.onClose('webhooks', () => webhooks.close({ timeoutMs: WEBHOOK_GRACE_MS }));

  return { metrics, metricsUrl: metricsServer.url, engine, certificate, system, bus, webhooks };
}

/** What a node reaches once its rooms are open. */
interface Reached {
  cluster?: Cluster;
  inspection?: Inspection | undefined;
  /** undefined until this node can serve. */
  files?: ServedFiles;
}

interface ReachParts {
  options: NodeOptions;
  closing: Closing;
  ground: Ground;
  host: RoomHost;
  own: Parameters<typeof offerFiles>[1];
  health: ReturnType<typeof healthOf>;
  serverSocket: ServerSocket;
}

/** Joins the cluster, if there is one, and lets tools reach this node. Fills in `reached` on the way. */
async function reachOthers(reached: Reached, parts: ReachParts): Promise<void> {
  const { options, closing, host, own, health, serverSocket } = parts;
  const { metrics, engine, system, bus, webhooks } = parts.ground;
  const { settings, log } = options;
  if (settings.cluster !== null) {
    // Members place rooms here immediately: accept none until the listener is up.
    host.drain('starting');
    const localServer = await openLocalSocket(settings, settings.cluster.nodeName, log);
    closing.onClose('local socket', () => void localServer?.close());
    offerFiles(system, own);
    const joined = await joinCluster({
      settings: settings.cluster,
      system,
      host,
      bus,
      metrics,
      log,
      wants: (kind) => serverSocket.wants(kind),
      webhooks,
      localServer,
      onRefused: options.onRefused,
      ...(options.resolver === undefined ? {} : { resolver: options.resolver }),
    });
    reached.cluster = joined;
    closing.onClose('cluster', () => joined.close());
    registerNodeFunctions(joined, host, health);
  }
  const alone = reached.cluster === undefined ? await answerAlone(settings, system, log) : undefined;
  closing.onClose('tools', () => alone?.remote.close());
  const remote = reached.cluster ?? alone;
  if (remote === undefined) return;
  const inspection = await openNodeInspection({ settings, system, reached: remote, host, engine, log });
  reached.inspection = inspection;
  closing.onClose('inspection', () => inspection?.close());
}

async function start(options: NodeOptions, closing: Closing): Promise<RunningNode> {
  const { settings, log } = options;
  const ground = await openGround(options, closing);
  const { metrics, engine, certificate, system, bus, webhooks } = ground;
  const livekit = await loadLivekit(settings);
  const reached: Reached = {};
  const cluster = (): Cluster | undefined => reached.cluster;
  const { host, hls, kept, recordings, livekitWebhooks } = openRooms({ options, closing, ground, reached, livekit });

  const { resourcesPath } = settings;
  const webhookBacklog = (): number => webhooks.pending + (livekitWebhooks?.pending ?? 0);
  collectQuality({ metrics, engine, rooms: host, system, webhookBacklog, resourcesPath });
  const serverSocket = new ServerSocket({ bus, token: settings.http.apiToken, log, metrics });
  closing.onClose('intervals', startIntervals({ settings, metrics, traffic: new MediaTraffic(engine, metrics) }));
  const reporter = new MetricsReporter({
    bus,
    log,
    intervalMs: settings.metrics.webrtcIntervalMs,
    report: async () => metricsReport(await host.reports()),
    wanted: () => serverSocket.wants('metrics') || (cluster()?.metricsWanted() ?? false),
  });
  closing.onClose('metrics reporter', () => reporter.close());

  let started = false;
  const ask = asking(() => reached.inspection);
  const control = nodeControl({ rooms: host, engine, system, started: () => started, ask });
  metrics.readNode(() => ({ ready: control.notReady() === undefined, draining: host.draining }));
  const health = healthOf(settings, cluster, host);
  const own = { streams: liveStreams(hls), recordings: kept, rawRecordings: rawRecordings(recordings) };
  await reachOthers(reached, { options, closing, ground, host, own, health, serverSocket });

  const files = servedFiles({ system, log, own, cluster: cluster() });
  reached.files = files;
  closing.onClose('files', () => files.close());
  // Once the rooms have moved, and before the node leaves its cluster: the others could not read these files any more.
  closing.onClose('copies of streams', () => hls.copied());
  const { secretKeyBase } = settings.http;
  const checks = new PathChecks({ media: engine, secretKeyBase });
  closing.onClose('checks', () => checks.close());
  const page = settings.dashboard === false ? undefined : pageFiles(settings.dashboard);
  const { listener, closeLivekit } = await openListener({
    settings,
    log,
    metrics,
    serverSocket,
    rooms: new RoomRouter({ system, host, registry: cluster()?.registry, log, secretKeyBase }),
    files,
    checks,
    health,
    node: control,
    cluster: clusterView(ask),
    page,
    livekit,
    maxConnections: options.maxConnections,
    relay: (socket, client) => engine.acceptRelayed(socket, client),
    onStep: ({ requestId, ...step }) => system.note(requestId, { where: 'http', ...step }),
    closing,
  });
  certificate?.onChange((tls) => listener.setTls(tls));
  host.undrain('starting');
  started = true;
  closing.onClose('rooms', () => host.deleteAll());
  // Before the rooms end, which would send all clients away at once. Through other nodes they would come back here.
  closing.onClose('LiveKit', async () => {
    host.endSoon();
    await Promise.all([closeLivekit(), host.tellElsewhere()]);
  });
  closing.onClose('drain', () => awaitRooms({ rooms: host, settings, log }));

  return {
    url: listener.url,
    metricsUrl: ground.metricsUrl,
    rooms: host,
    cluster: cluster(),
    certificate,
    hasPage: page !== undefined,
    close: () => closing.run(),
  };
}

/** Waits for the media plane while the control plane warms up. */
async function warmMedia(options: NodeOptions, media: Promise<Media>): Promise<Media> {
  const { settings, log, mediaInProcess = false } = options;
  const warm =
    mediaInProcess || startsCold()
      ? undefined
      : loadLivekit(settings)
          .then(warmUpRooms)
          .catch((error: unknown) => log.warn('node.warm_up_failed', { error }));
  const opened = await media;
  await warm;

  return opened;
}

interface RoomParts {
  options: NodeOptions;
  closing: Closing;
  ground: Ground;
  reached: Reached;
  livekit: LivekitModule | undefined;
}

/** Opens the rooms of this node and the services behind their components. */
function openRooms(parts: RoomParts): {
  host: RoomHost;
  hls: HlsService;
  kept: LocalRecordings;
  recordings: RecordingService;
  livekitWebhooks: LivekitWebhooks | undefined;
} {
  const { options, closing, reached } = parts;
  const { metrics, engine, system, bus, webhooks } = parts.ground;
  const { settings, log } = options;
  const processes = new Processes({ log });
  const kept = localRecordings(settings, (id) => hls.isLive(id));
  // In its turn, behind what is held back of its room.
  const publish = (event: Notification): void => host.fence.pass(event, () => bus.publish(event));
  const hls = new HlsService({
    resourcesPath: settings.resourcesPath,
    s3Endpoint: settings.recording.s3Endpoint,
    beginRecording: (id) => kept.begin(id),
    endRecording: (id) => kept.end(id),
    createdAt: (roomId) => host.createdAt(roomId),
    notify: publish,
    hold: (roomId) => webhooks.hold(roomId),
    fetch: (file) => reached.files?.fetchStream?.(file) ?? Promise.reject(new Error('this node reaches no other')),
    taken: async (node, report) => reached.files?.streamTaken?.(node, report),
    takerOf: (roomId) => reached.cluster?.registry.departures.takerOf(roomId),
    passesOn: (roomId) => host.relayRef(roomId) !== undefined,
    onPicturesLeftOut: (pictures) => metrics.picturesLeftOut(pictures),
    processes,
    log,
  });
  closing.onClose('streams', () => hls.settled());
  closing.onClose('tidying of streams', hls.tidy());
  const recordings = openRecordings(settings, { log, metrics, publish, webhooks, processes });
  closing.onClose('recordings', () => recordings.close({ timeoutMs: UPLOAD_GRACE_MS }));
  const phones = openPhones(settings, processes);
  closing.onClose('phones', () => phones?.settled());
  const livekitWebhooks = openLivekitWebhooks({
    livekit: parts.livekit,
    settings,
    bus,
    host: () => host,
    log,
    metrics,
  });
  closing.onClose('webhooks of LiveKit', () => livekitWebhooks?.close({ timeoutMs: WEBHOOK_GRACE_MS }));

  const host = new RoomHost({
    system,
    engine,
    createSession: sessionsOf(parts.livekit),
    events: (notification, { webhookUrl, requestId }) => {
      const { type, roomId } = notification;
      if (type === 'roomCreated' && webhookUrl !== null) webhooks.register(roomId, webhookUrl);
      // The other members must learn of a room before any client or webhook does.
      reached.cluster?.registry.observe(notification, requestId);
      if (requestId !== undefined) system.note(requestId, { where: 'notifications', what: type });
      bus.publish(notification);
      if (type === 'roomDeleted' || type === 'roomCrashed') hls.roomEnded(roomId);
      metrics.load(host.load());
    },
    moved: (way, { roomId, webhookUrl, peers, backlog }) => {
      metrics.roomMoved(way, roomId, peers);
      if (way === 'away') webhooks.leave(roomId);
      else if (webhookUrl !== null) webhooks.register(roomId, webhookUrl, backlog);
      livekitWebhooks?.moved(way, roomId);
      if (way === 'away') hls.roomMovedAway(roomId);
      metrics.load(host.load());
    },
    measure: (measure, roomId) => {
      countMeasure(metrics, measure);
      if (measure.type === 'join' && measure.outcome === 'media') livekitWebhooks?.mediaUp(roomId, measure.peerId);
    },
    log,
    address: settings.http.host,
    secretKeyBase: settings.http.secretKeyBase,
    webrtcEnabled: settings.webrtc !== null,
    componentKinds: [...builtInKinds(settings, { recordings, phones, processes }), hls.kind],
  });
  recordings.collectGarbage(async () => new Set(host.views().map(({ id }) => id)));

  return { host, hls, kept, recordings, livekitWebhooks };
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
