/** The figures of the media plane and the node for Prometheus, collected per scrape, never per packet. */
import { statfs } from 'node:fs/promises';
import type { ActorSystem } from '@bloom/actors';
import type { Metrics, NodeFigures, PeerQuality, Repairs } from '@bloom/metrics';
import type { RoomHost, RoomMeasure } from '@bloom/rooms';
import type { MediaEngine, RoomMediaStats, StreamStats, TransportStats } from '@bloom/sfu';
import { inTime } from '@bloom/time';
import { codecTracks } from './codec-tracks.js';

/** A room is left out of a scrape if its worker stays silent for longer than this. */
const STATS_TIMEOUT_MS = 1_000;

/** Counters of one direction of a peer, summed over its streams. */
interface Totals {
  packets: number;
  lost: number;
  nacks: number;
  plis: number;
}

/** Keyed by room and peer. */
type Seen = Map<string, Map<string, { in: Totals; out: Totals }>>;

/** Compares each peer's counters with those of the previous scrape. */
export class PeerQualities {
  #before: Seen = new Map();

  /** `silent` are rooms that did not answer: their next counters are compared with the scrape before this one. */
  look(rooms: readonly RoomMediaStats[], silent: readonly string[] = []): { peers: PeerQuality[]; repairs: Repairs } {
    const seen: Seen = new Map(silent.map((roomId) => [roomId, this.#before.get(roomId) ?? new Map()]));
    const peers: PeerQuality[] = [];
    const repairs: Repairs = { nacks: { in: 0, out: 0 }, plis: { in: 0, out: 0 } };
    for (const { roomId, transports } of rooms) {
      const known = this.#before.get(roomId);
      const counted: NonNullable<typeof known> = new Map();
      seen.set(roomId, counted);
      for (const transport of transports) {
        const now = { in: totalsOf(transport.inbound), out: totalsOf(transport.outbound) };
        counted.set(transport.peerId, now);
        const before = known?.get(transport.peerId) ?? { in: totalsOf([]), out: totalsOf([]) };
        const grown = { in: growth(now.in, before.in), out: growth(now.out, before.out) };
        for (const direction of ['in', 'out'] as const) {
          repairs.nacks[direction] += grown[direction].nacks;
          repairs.plis[direction] += grown[direction].plis;
        }
        if (transport.dtlsState === 'connected') peers.push(qualityOf(transport, grown));
      }
    }
    this.#before = seen;

    return { peers, repairs };
  }
}

function totalsOf(streams: readonly StreamStats[]): Totals {
  const sum = { packets: 0, lost: 0, nacks: 0, plis: 0 };
  for (const { packets, lost, nacks, plis } of streams) {
    sum.packets += packets;
    sum.lost += lost;
    sum.nacks += nacks;
    sum.plis += plis;
  }

  return sum;
}

/** A stream that ended takes its counters along, so the sum may fall. */
function growth(now: Totals, before: Totals): Totals {
  const grown = (key: keyof Totals): number => Math.max(0, now[key] - before[key]);

  return { packets: grown('packets'), lost: grown('lost'), nacks: grown('nacks'), plis: grown('plis') };
}

function qualityOf(transport: TransportStats, grown: { in: Totals; out: Totals }): PeerQuality {
  const { inbound, outbound, estimationBps } = transport;
  const trips = outbound.flatMap(({ roundTripMs }) => (roundTripMs === undefined ? [] : [roundTripMs]));
  const jitters = inbound.filter(({ active }) => active).map(({ jitterMs }) => jitterMs);

  return {
    // Received packets exclude lost ones; sent packets include them.
    ...share('lossIn', grown.in.lost, grown.in.packets + grown.in.lost),
    ...share('lossOut', grown.out.lost, grown.out.packets),
    ...(trips.length === 0 ? {} : { roundTripSeconds: Math.max(...trips) / 1_000 }),
    ...(jitters.length === 0 ? {} : { jitterSeconds: Math.max(...jitters) / 1_000 }),
    ...(estimationBps === undefined ? {} : { estimateBps: estimationBps }),
  };
}

function share(key: 'lossIn' | 'lossOut', part: number, whole: number): PeerQuality {
  return whole === 0 ? {} : { [key]: Math.min(1, part / whole) };
}

/** Counts what rooms report about joins and components. */
export function countMeasure({ quality }: Metrics, measure: RoomMeasure): void {
  switch (measure.type) {
    case 'join':
      return quality.joined(measure.outcome, measure.seconds);
    case 'connectFailure':
      return quality.connectFailed(measure.cause);
    case 'media':
      return quality.mediaConnection(measure.outcome, measure.path, measure.seconds);
    case 'componentCrashed':
      return quality.componentCrashed(measure.kind);
  }
}

export interface QualityParts {
  metrics: Metrics;
  engine: MediaEngine;
  rooms: RoomHost;
  system: ActorSystem;
  webhookBacklog: () => number;
  resourcesPath: string;
}

/** Collects everything before each scrape. */
export function collectQuality(parts: QualityParts): void {
  const { metrics, engine, rooms, system, webhookBacklog, resourcesPath } = parts;
  const peers = new PeerQualities();

  metrics.beforeScrape(async () => {
    const [media, disk] = await Promise.all([mediaOf(rooms), diskOf(resourcesPath)]);
    const { peers: qualities, repairs } = peers.look(media.answers, media.silent);
    for (const quality of qualities) metrics.quality.peer(quality);
    metrics.quality.repairs(repairs);
    metrics.quality.codecTracks(codecTracks(media.answers));
    metrics.quality.figures({
      workersBusy: engine.workersBusy(),
      workerRestarts: engine.workerRestarts,
      webhookBacklog: webhookBacklog(),
      longestMailbox: system.longestQueue(),
      disk,
    });
  });
}

async function mediaOf(rooms: RoomHost): Promise<{ answers: RoomMediaStats[]; silent: string[] }> {
  const answers: RoomMediaStats[] = [];
  const silent: string[] = [];
  await Promise.all(
    rooms.views().map(async ({ id }) => {
      const media = rooms.media(id);
      if (media === undefined) return;
      const asked = media.stats().catch(() => undefined);
      const stats = await inTime(asked, { timeoutMs: STATS_TIMEOUT_MS, late: () => undefined });
      if (stats === undefined) silent.push(id);
      else answers.push(stats);
    }),
  );

  return { answers, silent };
}

async function diskOf(path: string): Promise<NodeFigures['disk']> {
  const found = await statfs(path).catch(() => undefined);

  return found === undefined
    ? undefined
    : { freeBytes: found.bavail * found.bsize, sizeBytes: found.blocks * found.bsize };
}
