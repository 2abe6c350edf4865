import type { MediaDropCause } from '../media-engine.js';

/** Packets dropped in a row before a report. A few are normal, such as late ones of a track that has ended. */
const MIN_PACKETS = 20;
/** Period within which they must arrive, ms. */
const MIN_DURATION_MS = 2_000;
/** Pause that starts the count again, ms. */
const MAX_PAUSE_MS = 2_000;
/** Limit on reports per transport: a client can publish new tracks endlessly. */
const MAX_REPORTS = 32;

/** Packets of one client and one track that were dropped for the same cause. */
export interface DroppedMedia {
  cause: MediaDropCause;
  /** Absent if the packets belong to no track. */
  trackId: string | undefined;
  packets: number;
}

interface Count extends DroppedMedia {
  sinceMs: number;
  lastMs: number;
  /** Packets since `sinceMs`. */
  recent: number;
  reported: boolean;
}

/** Counts one client's dropped packets by cause and track, and reports each combination once if the drops persist. */
export class DropReports {
  readonly #report: (dropped: DroppedMedia) => void;
  /** By track id; undefined for packets that belong to no track. */
  readonly #counts = new Map<string | undefined, Map<MediaDropCause, Count>>();
  #reports = 0;

  constructor(report: (dropped: DroppedMedia) => void) {
    this.#report = report;
  }

  count(cause: MediaDropCause, trackId: string | undefined, nowMs: number): void {
    let ofTrack = this.#counts.get(trackId);
    if (ofTrack === undefined) this.#counts.set(trackId, (ofTrack = new Map()));
    let count = ofTrack.get(cause);
    if (count === undefined) {
      count = { cause, trackId, packets: 0, sinceMs: nowMs, lastMs: nowMs, recent: 0, reported: false };
      ofTrack.set(cause, count);
    }
    if (nowMs - count.lastMs >= MAX_PAUSE_MS) {
      count.sinceMs = nowMs;
      count.recent = 0;
    }
    count.lastMs = nowMs;
    count.packets++;
    count.recent++;
    if (count.reported || count.recent < MIN_PACKETS || nowMs - count.sinceMs < MIN_DURATION_MS) return;
    count.reported = true;
    if (this.#reports >= MAX_REPORTS) return;
    this.#reports++;
    this.#report({ cause, trackId, packets: count.packets });
  }

  /** Forgets a track that has ended. */
  forget(trackId: string): void {
    this.#counts.delete(trackId);
  }

  stats(): DroppedMedia[] {
    return [...this.#counts.values()].flatMap((ofTrack) =>
      [...ofTrack.values()].map(({ cause, trackId, packets }) => ({ cause, trackId, packets })),
    );
  }
}
