import type { TappedFrame } from '@bloom/sfu';

/** After so long the fastest frame has come; what comes later shows how two clocks drift apart. */
export const SETTLE_MS = 30_000;
/** Clocks of one publisher that differ by more are two: it has come back on another machine, or set its clock. */
const SAME_CLOCK_MS = 1_000;

/** The server's time of a publisher's times. */
export interface ClockOffset {
  /** Server minus publisher, plus the shortest way between them. */
  readonly ms: number;
}

interface Epoch {
  ms: number;
  settledAtMs: number;
}

/**
 * The clock of one publisher as its RTCP sender reports show it, set against the server's by the frame that was fastest on
 * its way. All its tracks share it; so voice and lips stay together whatever the network did to either.
 */
export class OriginClock {
  readonly #epochs: Epoch[] = [];

  /** Undefined without a sender report. The answer may still fall within `SETTLE_MS`. */
  heard({ arrivalMs, senderMs }: TappedFrame): ClockOffset | undefined {
    if (senderMs === undefined) return undefined;
    const ms = arrivalMs - senderMs;
    const known = this.#epochs.findLast((epoch) => Math.abs(ms - epoch.ms) < SAME_CLOCK_MS);
    if (known === undefined) {
      const epoch = { ms, settledAtMs: arrivalMs + SETTLE_MS };
      this.#epochs.push(epoch);
      // One that sets its clock all the time shall not fill the memory.
      if (this.#epochs.length > 16) this.#epochs.shift();
      return epoch;
    }
    if (arrivalMs < known.settledAtMs) known.ms = Math.min(known.ms, ms);

    return known;
  }
}
