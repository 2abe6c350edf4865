import { collectDefaultMetrics, type Counter, Gauge, Registry } from 'prom-client';
import { type Clock, systemClock } from '@bloom/time';
import { QualitySeries } from './quality-series.js';
import { RoomSeries } from './room-series.js';
import { seriesOf } from './series.js';

export interface MetricsOptions {
  /** Seconds per tick of the time counters (`JF_ROOM_METRICS_INTERVAL_MS` / 1000). */
  tickSeconds: number;
  /** Adds the series under the names of the last release and of Jellyfish (`JF_METRICS_COMPAT`). Default false. */
  compat?: boolean;
  clock?: Clock;
}

/** Load of a node, as compared for placement. */
export interface LoadFigures {
  forwardedTracks: number;
  rooms: number;
}

/** Readiness of a node for new rooms. */
export interface NodeState {
  ready: boolean;
  draining: boolean;
}

/**
 * Metrics of a node (docs/reference/metrics.md). Callers report events, which this class maps to the series of a
 * Prometheus registry.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #compat: boolean;
  readonly #rooms: RoomSeries;
  readonly #ingressWebrtc: Counter;
  readonly #egressWebrtc: Counter;
  readonly #ingressHttp: Counter;
  readonly #egressHttp: Counter;
  readonly #linkUp: Gauge<'node'>;
  readonly #nodeUps: Counter<'node'>;
  readonly #nodeDowns: Counter<'node'>;
  readonly #loadTracks: Gauge;
  readonly #loadRooms: Gauge;
  readonly #placements: Counter<'node'>;
  readonly #conflicts: Counter<'node'>;
  readonly #idConflicts: Counter;
  readonly #messagesRefused: Counter;
  readonly #webhookFailures: Counter;
  readonly #webhookDrops: Counter;
  readonly #slowSubscribers: Counter;
  readonly #dataEventsDropped: Counter;
  readonly #abandonedUploads: Counter;
  readonly #leftOutPictures: Counter;
  /** Call quality, and figures about the node. */
  readonly quality: QualitySeries;
  readonly #beforeScrape: (() => Promise<void>)[] = [];
  #nodeState: () => NodeState = () => ({ ready: false, draining: false });

  constructor(options: MetricsOptions) {
    this.#compat = options.compat ?? false;
    const { counter, gauge } = seriesOf(this.#registry);

    this.#rooms = new RoomSeries({
      registry: this.#registry,
      tickSeconds: options.tickSeconds,
      clock: options.clock ?? systemClock,
    });
    this.#ingressWebrtc = counter('bloom_traffic_ingress_webrtc_bytes_total', 'Bytes of ICE payload received');
    this.#egressWebrtc = counter('bloom_traffic_egress_webrtc_bytes_total', 'Bytes of ICE payload sent');
    this.#ingressHttp = counter('bloom_traffic_ingress_http_bytes_total', 'Bytes of HTTP requests received');
    this.#egressHttp = counter('bloom_traffic_egress_http_bytes_total', 'Bytes of HTTP responses sent');
    this.#linkUp = gauge('bloom_cluster_link_up', '1 while the link to that node is up', 'node');
    this.#nodeUps = counter('bloom_cluster_nodeup_total', 'Times that node joined', 'node');
    this.#nodeDowns = counter('bloom_cluster_nodedown_total', 'Times that node was lost or left', 'node');
    this.#loadTracks = gauge(
      'bloom_load_forwarded_tracks',
      'Track subscriptions of this node, the first figure of placement',
    );
    this.#loadRooms = gauge('bloom_load_rooms', 'Rooms and reservations of this node, the second figure of placement');
    this.#placements = counter(
      'bloom_placements_total',
      'Rooms placed by this node, by the node that got them',
      'node',
    );
    this.#conflicts = counter('bloom_placement_conflicts_total', 'Reservations that node refused', 'node');
    this.#idConflicts = counter('bloom_room_id_conflicts_total', 'Room ids found on two nodes after a split healed');
    this.#messagesRefused = counter(
      'bloom_cluster_messages_refused_total',
      'Messages, signals and answers of other nodes that were refused for their shape',
    );
    this.#webhookFailures = counter('bloom_webhook_failures_total', 'Webhook events lost after their last attempt');
    this.#webhookDrops = counter('bloom_webhook_drops_total', 'Webhook events dropped from a full backlog');
    this.#slowSubscribers = counter(
      'bloom_slow_subscribers_total',
      'Server websockets closed because they did not keep up',
    );
    this.#dataEventsDropped = counter(
      'bloom_data_events_dropped_total',
      'Messages of data channels that a slow subscriber or webhook receiver did not get',
    );
    this.#abandonedUploads = counter('bloom_recording_uploads_abandoned_total', 'Recording uploads given up');
    this.#leftOutPictures = counter(
      'bloom_hls_pictures_left_out_total',
      'Pictures that no decoder got, beyond a limit or without memory for them',
    );

    this.quality = new QualitySeries(this.#registry);
    const nodeGauge = (key: keyof NodeState, help: string): Gauge => {
      const value = (): number => Number(this.#nodeState()[key]);
      return new Gauge({
        name: `bloom_node_${key}`,
        help,
        registers: [this.#registry],
        collect() {
          this.set(value());
        },
      });
    };
    nodeGauge('ready', '1 while this node takes new rooms');
    nodeGauge('draining', '1 while this node drains or ends');
  }

  /** Adds memory, event loop lag and garbage collection of the process, which are observed from then on. */
  observeProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  roomCreated(roomId: string): void {
    this.#rooms.created(roomId);
  }

  /** Sets every series of the room to 0 and removes them after 5 minutes. */
  roomRemoved(roomId: string): void {
    this.#rooms.removed(roomId);
  }

  /** Begins the series of a room that has moved to this node with its peers, or ends those of one that has left it. */
  roomMoved(way: 'here' | 'away', roomId: string, peers: number): void {
    if (way === 'away') return this.#rooms.removed(roomId);
    this.#rooms.created(roomId);
    this.#rooms.addPeers(roomId, peers);
  }

  peerAdded(roomId: string): void {
    this.#rooms.addPeers(roomId, 1);
  }

  peerRemoved(roomId: string): void {
    this.#rooms.addPeers(roomId, -1);
  }

  peerConnected(roomId: string): void {
    this.#rooms.peerConnected(roomId);
  }

  peerDisconnected(roomId: string): void {
    this.#rooms.peerDisconnected(roomId);
  }

  peerCrashed(roomId: string): void {
    this.#rooms.peerCrashed(roomId);
  }

  webrtcReceived(bytes: number): void {
    this.#ingressWebrtc.inc(bytes);
  }

  webrtcSent(bytes: number): void {
    this.#egressWebrtc.inc(bytes);
  }

  httpReceived(bytes: number): void {
    this.#ingressHttp.inc(bytes);
  }

  httpSent(bytes: number): void {
    this.#egressHttp.inc(bytes);
  }

  nodeUp(node: string): void {
    this.#linkUp.set({ node }, 1);
    this.#nodeUps.inc({ node });
    this.#nodeDowns.inc({ node }, 0);
  }

  /** Records that a node went down. `inOrder` is true if it left, so that no link to it is missing. */
  nodeDown(node: string, inOrder: boolean): void {
    if (inOrder) this.#linkUp.remove({ node });
    else this.#linkUp.set({ node }, 0);
    this.#nodeDowns.inc({ node });
  }

  load(figures: LoadFigures): void {
    this.#loadTracks.set(figures.forwardedTracks);
    this.#loadRooms.set(figures.rooms);
  }

  roomPlaced(node: string): void {
    this.#placements.inc({ node });
  }

  reservationRefused(node: string): void {
    this.#conflicts.inc({ node });
  }

  roomIdConflict(): void {
    this.#idConflicts.inc();
  }

  messageRefused(): void {
    this.#messagesRefused.inc();
  }

  webhookFailed(): void {
    this.#webhookFailures.inc();
  }

  webhookDropped(): void {
    this.#webhookDrops.inc();
  }

  slowSubscriberClosed(): void {
    this.#slowSubscribers.inc();
  }

  dataEventsDropped(events: number): void {
    this.#dataEventsDropped.inc(events);
  }

  uploadAbandoned(): void {
    this.#abandonedUploads.inc();
  }

  picturesLeftOut(pictures: number): void {
    this.#leftOutPictures.inc(pictures);
  }

  /** Sets the function that returns the node's state at each scrape. */
  readNode(state: () => NodeState): void {
    this.#nodeState = state;
  }

  /** Advances the time counters by one tick, and drops the series of rooms that ended 5 minutes ago. */
  tick(): void {
    this.#rooms.tick();
  }

  /** Adds a function that updates series. It runs on each scrape and must finish in time. */
  beforeScrape(collect: () => Promise<void>): void {
    this.#beforeScrape.push(collect);
  }

  /** Returns the metrics in the Prometheus text format. */
  async expose(): Promise<string> {
    await Promise.all(this.#beforeScrape.map((collect) => collect()));
    const text = await this.#registry.metrics();

    return this.#compat ? text + oldSeries(text) : text;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}

/** Series that the Jellyfish media server also has, with `jellyfish` in place of `bloom`. */
const JELLYFISH_SERIES = /^(?:# (?:HELP|TYPE) )?bloom_(?:rooms|room_(?!id_)|traffic_)/;
/** Counters whose names have changed, except in the Jellyfish media server. Prometheus puts `_total` last. */
const RENAMED = /(bloom_(?:traffic_(?:in|e)gress_(?:webrtc|http)|room_peer_time|room_duration))_(bytes|seconds)_total/;

/** Returns the series under the names of the previous release and of the Jellyfish media server. */
function oldSeries(text: string): string {
  const lines = text.split('\n');
  const renamed = lines.filter((line) => RENAMED.test(line)).map(formerName);
  const jellyfish = lines
    .filter((line) => JELLYFISH_SERIES.test(line))
    .map((line) => formerName(line).replace('bloom_', 'jellyfish_'));

  return `${[...renamed, ...jellyfish].join('\n')}\n`;
}

function formerName(line: string): string {
  return line.replace(RENAMED, (_, name: string, unit: string) =>
    name === 'bloom_room_duration' ? `${name}_${unit}` : `${name}_total_${unit}`,
  );
}
