import { type Clock, sleep } from '@bloom/time';

/**
 * When playback is further behind than this (the machine was suspended), it skips ahead instead of sending everything
 * at once.
 */
const MAX_LATE_MS = 500;

/** Releases frames on schedule. Times are counted from the start, so rounding errors do not add up. */
export class Pacer {
  readonly #clock: Clock;
  readonly #startMs: number;
  #shiftMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.now();
  }

  /** Resolves `atMs` after the start, or when the signal is aborted, with the time on the clock at which it was due. */
  async until(atMs: number, signal: AbortSignal): Promise<number> {
    const dueMs = this.#startMs + this.#shiftMs + atMs;
    const waitMs = dueMs - this.#clock.now();
    if (waitMs > 0) await sleep(waitMs, { clock: this.#clock, signal });
    if (-waitMs <= MAX_LATE_MS) return dueMs;

    this.#shiftMs -= waitMs;
    return dueMs - waitMs;
  }
}
