import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { seriesOf } from './series.js';

/** Quality experienced by one peer since the last report; absent values are unknown. */
export interface PeerQuality {
  /** Share of packets lost between the peer and the server, 0 to 1. */
  lossIn?: number;
  /** Share of packets lost between the server and the peer, 0 to 1. */
  lossOut?: number;
  roundTripSeconds?: number;
  jitterSeconds?: number;
  /** Estimated receive bandwidth of the peer, in bits per second. */
  estimateBps?: number;
}

/** Repair requests since the last report: `in` were sent to publishers, `out` came from receivers. */
export interface Repairs {
  nacks: { in: number; out: number };
  plis: { in: number; out: number };
}

/** Tracks that flow, by codec: from publishers and to receivers, and those of the latter that lack bandwidth. */
export interface CodecTracks {
  in: Record<string, number>;
  out: Record<string, number>;
  /** `pictures`: fewer pictures per second; `size`: a smaller size. */
  reduced: Record<string, { pictures: number; size: number }>;
}

/** Figures about the process and its environment at the time of a scrape. */
export interface NodeFigures {
  /** Share of time that each media worker was busy since the last report, 0 to 1, starting with worker 1. */
  workersBusy: readonly number[];
  workerRestarts: number;
  webhookBacklog: number;
  /** Number of messages in the fullest mailbox. */
  longestMailbox: number;
  /** File system of the resources; undefined if it cannot be read. */
  disk: { freeBytes: number; sizeBytes: number } | undefined;
}

export interface BuildInfo {
  version: string;
  commit: string;
}

const SECONDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 30];

/** Series about call quality and node health. None has a label per peer or room. */
export class QualitySeries {
  readonly #joins: Counter<'outcome'>;
  readonly #timeToMedia: Histogram;
  readonly #connectFailures: Counter<'cause'>;
  readonly #mediaConnections: Counter<'outcome' | 'path'>;
  readonly #mediaSeconds: Histogram;
  readonly #componentCrashes: Counter<'kind'>;
  readonly #loss: Histogram<'direction'>;
  readonly #roundTrip: Histogram;
  readonly #jitter: Histogram;
  readonly #estimate: Histogram;
  readonly #nacks: Counter<'direction'>;
  readonly #plis: Counter<'direction'>;
  readonly #tracks: Gauge<'direction' | 'codec'>;
  readonly #reducedTracks: Gauge<'codec' | 'reduction'>;
  readonly #workerBusy: Gauge<'worker'>;
  readonly #workerRestarts: Counter;
  readonly #dataMessages: Counter<'direction'>;
  readonly #mediaDrops: Counter<'reason'>;
  readonly #packetsCrossed: Counter;
  readonly #webhookBacklog: Gauge;
  readonly #longestMailbox: Gauge;
  readonly #diskFree: Gauge;
  readonly #diskSize: Gauge;
  readonly #httpDuration: Histogram<'route'>;
  readonly #build: Gauge<'version' | 'commit' | 'node'>;
  #restarts = 0;

  constructor(registry: Registry) {
    const { counter, gauge, histogram } = seriesOf(registry);

    this.#joins = counter('bloom_joins_total', 'Connections of peers by outcome', 'outcome');
    this.#timeToMedia = histogram('bloom_join_seconds', {
      help: 'Time from the websocket until media could flow',
      buckets: SECONDS,
    });
    this.#connectFailures = counter('bloom_ice_failures_total', 'Media paths that failed, by cause', 'cause');
    const outcomes = 'Media connections of clients that were established or failed';
    this.#mediaConnections = counter('bloom_media_connections_total', outcomes, 'outcome', 'path');
    const mediaTime = { help: 'Time from the answer until packets could pass', buckets: SECONDS };
    this.#mediaSeconds = histogram('bloom_media_connect_seconds', mediaTime);
    this.#componentCrashes = counter('bloom_component_crashes_total', 'Components that crashed', 'kind');
    const lossBuckets = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    this.#loss = histogram(
      'bloom_peer_loss_ratio',
      { help: 'Share of packets lost between scrapes', buckets: lossBuckets },
      'direction',
    );
    const trips = [0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
    this.#roundTrip = histogram('bloom_peer_round_trip_seconds', {
      help: 'Round trip to each peer at a scrape',
      buckets: trips,
    });
    const jitters = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
    this.#jitter = histogram('bloom_peer_jitter_seconds', {
      help: 'Highest jitter of each publisher at a scrape',
      buckets: jitters,
    });
    const rates = [100e3, 250e3, 500e3, 1e6, 2e6, 4e6, 8e6, 16e6];
    this.#estimate = histogram('bloom_peer_estimate_bps', {
      help: 'Estimated bandwidth to each peer at a scrape',
      buckets: rates,
    });
    this.#nacks = counter('bloom_nacks_total', 'Requests to send lost packets again', 'direction');
    this.#plis = counter('bloom_plis_total', 'Requests for a key frame', 'direction');
    this.#tracks = gauge('bloom_media_tracks', 'Tracks that flow', 'direction', 'codec');
    const reduced = 'Tracks to receivers of which a part is left out for lack of bandwidth';
    this.#reducedTracks = gauge('bloom_media_reduced_tracks', reduced, 'codec', 'reduction');
    this.#workerBusy = gauge('bloom_media_worker_busy_ratio', 'Share of time that a media worker works', 'worker');
    this.#workerRestarts = counter('bloom_media_worker_restarts_total', 'Media workers that were replaced');
    this.#dataMessages = counter('bloom_data_messages_total', 'Messages on data channels', 'direction');
    this.#mediaDrops = counter('bloom_media_drops_total', 'Packets and messages dropped by media workers', 'reason');
    const crossed = 'Packets that one media worker passed to another';
    this.#packetsCrossed = counter('bloom_media_packets_crossed_total', crossed);
    this.#webhookBacklog = gauge('bloom_webhook_backlog', 'Webhook events that wait or are being sent');
    this.#longestMailbox = gauge('bloom_longest_mailbox', 'Messages in the fullest mailbox of an actor');
    this.#diskFree = gauge('bloom_disk_free_bytes', 'Free bytes of the file system below the resources');
    this.#diskSize = gauge('bloom_disk_size_bytes', 'Size of the file system below the resources');
    const httpBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
    this.#httpDuration = histogram(
      'bloom_http_request_seconds',
      { help: 'Duration of HTTP requests', buckets: httpBuckets },
      'route',
    );
    this.#build = gauge('bloom_build_info', '1; its labels name the build', 'version', 'commit', 'node');

    for (const outcome of ['media', 'left', 'failed']) this.#joins.inc({ outcome }, 0);
    for (const cause of ['no_checks', 'not_nominated', 'dtls', 'silent']) this.#connectFailures.inc({ cause }, 0);
    this.#mediaConnections.inc({ outcome: 'connected', path: 'udp' }, 0);
    this.#mediaConnections.inc({ outcome: 'failed', path: 'none' }, 0);
    for (const direction of ['in', 'out']) {
      this.#nacks.inc({ direction }, 0);
      this.#plis.inc({ direction }, 0);
    }
  }

  buildInfo({ version, commit }: BuildInfo): void {
    this.#build.set({ version, commit, node: process.versions.node }, 1);
  }

  joined(outcome: 'media' | 'left' | 'failed', seconds: number): void {
    this.#joins.inc({ outcome });
    if (outcome === 'media') this.#timeToMedia.observe(seconds);
  }

  connectFailed(cause: string): void {
    this.#connectFailures.inc({ cause });
  }

  /** `path`: how packets reach the client, or `none`. */
  mediaConnection(outcome: 'connected' | 'failed', path: string, seconds?: number): void {
    this.#mediaConnections.inc({ outcome, path });
    if (seconds !== undefined) this.#mediaSeconds.observe(seconds);
  }

  componentCrashed(kind: string): void {
    this.#componentCrashes.inc({ kind });
  }

  /** Adds one peer to the per-peer histograms. */
  peer({ lossIn, lossOut, roundTripSeconds, jitterSeconds, estimateBps }: PeerQuality): void {
    if (lossIn !== undefined) this.#loss.observe({ direction: 'in' }, lossIn);
    if (lossOut !== undefined) this.#loss.observe({ direction: 'out' }, lossOut);
    if (roundTripSeconds !== undefined) this.#roundTrip.observe(roundTripSeconds);
    if (jitterSeconds !== undefined) this.#jitter.observe(jitterSeconds);
    if (estimateBps !== undefined) this.#estimate.observe(estimateBps);
  }

  repairs({ nacks, plis }: Repairs): void {
    for (const direction of ['in', 'out'] as const) {
      this.#nacks.inc({ direction }, nacks[direction]);
      this.#plis.inc({ direction }, plis[direction]);
    }
  }

  codecTracks(tracks: CodecTracks): void {
    this.#tracks.reset();
    this.#reducedTracks.reset();
    for (const direction of ['in', 'out'] as const) {
      for (const [codec, count] of Object.entries(tracks[direction])) this.#tracks.set({ direction, codec }, count);
    }
    for (const [codec, { pictures, size }] of Object.entries(tracks.reduced)) {
      this.#reducedTracks.set({ codec, reduction: 'pictures' }, pictures);
      this.#reducedTracks.set({ codec, reduction: 'size' }, size);
    }
  }

  /** Counts messages on data channels: `in` from clients, `out` to each receiver. */
  dataMessages(direction: 'in' | 'out', count: number): void {
    this.#dataMessages.inc({ direction }, count);
  }

  /** Counts packets and messages that media workers dropped. */
  mediaDropped(reason: string, count: number): void {
    this.#mediaDrops.inc({ reason }, count);
  }

  /** Counts packets that one media worker passed to another, for rooms that span both. */
  packetsCrossed(count: number): void {
    this.#packetsCrossed.inc(count);
  }

  figures({ workersBusy, workerRestarts, webhookBacklog, longestMailbox, disk }: NodeFigures): void {
    this.#workerBusy.reset();
    for (const [i, busy] of workersBusy.entries()) this.#workerBusy.set({ worker: String(i + 1) }, busy);
    this.#workerRestarts.inc(Math.max(0, workerRestarts - this.#restarts));
    this.#restarts = workerRestarts;
    this.#webhookBacklog.set(webhookBacklog);
    this.#longestMailbox.set(longestMailbox);
    if (disk === undefined) return;
    this.#diskFree.set(disk.freeBytes);
    this.#diskSize.set(disk.sizeBytes);
  }

  /** Returns the function that records a request of this route; call it once per route. */
  httpRoute(route: string): (seconds: number) => void {
    const histogram = this.#httpDuration.labels({ route });

    return (seconds) => histogram.observe(seconds);
  }
}
