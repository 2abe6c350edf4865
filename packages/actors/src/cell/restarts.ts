import type { Clock } from '@bloom/time';

const DEFAULT_MAX = 3;
const DEFAULT_WINDOW_MS = 60_000;

/** Limits how often an actor is restarted within a window of time. */
export class Restarts {
  readonly max: number;
  readonly windowMs: number;
  readonly #clock: Clock;
  #times: number[] = [];

  constructor(options: { maxRestarts?: number; restartWindowMs?: number }, clock: Clock) {
    this.max = options.maxRestarts ?? DEFAULT_MAX;
    this.windowMs = options.restartWindowMs ?? DEFAULT_WINDOW_MS;
    this.#clock = clock;
  }

  /** Restarts within the window. */
  get recent(): number {
    const now = this.#clock.now();

    return this.#times.filter((at) => now - at < this.windowMs).length;
  }

  /** Counts one restart; false when it is one too many. */
  take(): boolean {
    const now = this.#clock.now();
    this.#times = this.#times.filter((at) => now - at < this.windowMs);
    if (this.#times.length >= this.max) return false;
    this.#times.push(now);

    return true;
  }
}
