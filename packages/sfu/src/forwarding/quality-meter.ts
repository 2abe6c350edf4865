import type { ConnectionQuality } from '../media-state.js';

/** Interval of the judgements, ms. */
export const QUALITY_INTERVAL_MS = 5_000;
/** Lowest scores, of 100. As LiveKit's server has them, since its clients show the result. */
const EXCELLENT = 80;
const GOOD = 40;
/** Points that each percent of lost packets costs. */
const PER_LOST_PERCENT = 10;
/** Points that each variant below the wanted one costs. */
const PER_VARIANT = 35;
/** Packets of a direction from which their losses are judged. */
const MIN_PACKETS = 10;

/** What a transport has seen so far; the counters rise, or fall when a stream ends. */
export interface QualitySigns {
  /** Media packets that arrived from the client, and those that did not. */
  received: number;
  missing: number;
  /** Media packets sent to the client, and those that it has reported lost. */
  sent: number;
  lost: number;
  roundTripMs: number;
  /** How many variants the most reduced picture is below the one that the client wants, for lack of bandwidth. */
  reducedBy: number;
}

/** Judges how well one client's media flows, from the changes between two looks. Sans-IO. */
export class QualityMeter {
  #before: QualitySigns | undefined;
  #told: ConnectionQuality | undefined;

  /** Returns the quality if it has changed. `isLost`: nothing arrives from the client. */
  look(signs: QualitySigns, isLost: boolean): ConnectionQuality | undefined {
    const before = this.#before ?? signs;
    this.#before = signs;
    const quality = isLost ? 'lost' : qualityOf(signs, before);
    if (quality === this.#told) return undefined;
    this.#told = quality;

    return quality;
  }
}

function qualityOf(now: QualitySigns, before: QualitySigns): ConnectionQuality {
  const received = grown(now.received, before.received);
  const missing = grown(now.missing, before.missing);
  const lost = grown(now.lost, before.lost);
  const percent = Math.max(percentOf(missing, received + missing), percentOf(lost, grown(now.sent, before.sent)));
  const points = percent * PER_LOST_PERCENT + delayPoints(now.roundTripMs / 2) + now.reducedBy * PER_VARIANT;
  const score = 100 - points;
  if (score >= EXCELLENT) return 'excellent';

  return score >= GOOD ? 'good' : 'poor';
}

function grown(now: number, before: number): number {
  return Math.max(0, now - before);
}

function percentOf(part: number, whole: number): number {
  return whole < MIN_PACKETS ? 0 : (100 * Math.min(part, whole)) / whole;
}

/** The delay impairment of ITU-T G.107 in its usual short form: slow up to 160 ms one way, then fast. */
function delayPoints(oneWayMs: number): number {
  return oneWayMs < 160 ? oneWayMs / 40 : (oneWayMs - 120) / 10;
}
