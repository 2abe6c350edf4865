import type { TappedFrame } from '@bloom/sfu';

/** The fastest frame has arrived by then; later changes are drift between the two clocks. */
export const SETTLE_MS = 30_000;
/**
 * Readings further apart than this come from different clocks: the publisher moved to another machine or set its clock.
 */
const SAME_CLOCK_MS = 1_000;

/** The first frame may be this much later than the fastest one. A clock slower than that was set repeatedly. */
const LONGEST_DELAY_MS = 2_000;

/** Offset between the publisher's clock and the server's clock. */
export interface ClockOffset {
  /** Server time minus publisher time, including the shortest delay between the two. */
  readonly ms: number;
}

interface Epoch {
  ms: number;
  readonly leastMs: number;
  settledAtMs: number;
}

/**
 * Clock of one publisher, known from its RTCP sender reports and aligned with the server's clock by the frame with the
 * shortest delay. All tracks of the publisher share it, so that audio and video stay in sync whatever the network does
 * to either.
 */
export class OriginClock {
  readonly #epochs: Epoch[] = [];

  /** Returns undefined without a sender report. The offset may still decrease within `SETTLE_MS`. */
  offsetOf({ arrivalMs, senderMs }: TappedFrame): ClockOffset | undefined {
    if (senderMs === undefined) return undefined;
    const ms = arrivalMs - senderMs;
    const known = this.#epochs.findLast((epoch) => Math.abs(ms - epoch.ms) < SAME_CLOCK_MS);
    if (known === undefined) {
      const epoch = { ms, leastMs: ms - LONGEST_DELAY_MS, settledAtMs: arrivalMs + SETTLE_MS };
      this.#epochs.push(epoch);
      // A publisher that keeps setting its clock must not fill the memory.
      if (this.#epochs.length > 16) this.#epochs.shift();
      return epoch;
    }
    if (arrivalMs < known.settledAtMs) known.ms = Math.max(known.leastMs, Math.min(known.ms, ms));

    return known;
  }
}
