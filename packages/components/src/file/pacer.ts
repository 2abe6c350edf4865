import { type Clock, sleep } from '@bloom/time';

/**
 * When further behind than this (the machine was suspended), time continues from here instead of everything being sent at once.
 */
const MAX_LATE_MS = 500;

/** Releases frames at their times. Each is counted from the start, so that rounding errors do not add up. */
export class Pacer {
  readonly #clock: Clock;
  readonly #startMs: number;
  #shiftMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.now();
  }

  /** Resolves `atMs` after the start, or when the signal is aborted. Returns when that was due, by the clock. */
  async until(atMs: number, signal: AbortSignal): Promise<number> {
    const dueMs = this.#startMs + this.#shiftMs + atMs;
    const waitMs = dueMs - this.#clock.now();
    if (waitMs > 0) await sleep(waitMs, { clock: this.#clock, signal });
    if (-waitMs <= MAX_LATE_MS) return dueMs;

    this.#shiftMs -= waitMs;
    return dueMs - waitMs;
  }
}
