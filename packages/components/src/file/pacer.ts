import { type Clock, sleep } from '@bloom/time';

/** More than this behind (a suspended machine): time goes on from here, instead of everything at once. */
const MAX_LATE_MS = 500;

/** Lets frames go at their time. Each moment is counted from the start, so that no rounding adds up. */
export class Pacer {
  readonly #clock: Clock;
  readonly #startMs: number;
  #shiftMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.now();
  }

  /** Resolves at that many ms after the start, or when the signal is aborted. */
  async until(atMs: number, signal: AbortSignal): Promise<void> {
    const waitMs = this.#startMs + this.#shiftMs + atMs - this.#clock.now();
    if (waitMs > 0) await sleep(waitMs, { clock: this.#clock, signal });
    else if (-waitMs > MAX_LATE_MS) this.#shiftMs -= waitMs;
  }
}
