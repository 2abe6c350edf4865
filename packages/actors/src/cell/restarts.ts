import type { Clock } from '@bloom/time';

const DEFAULT_MAX = 3;
const DEFAULT_WINDOW_MS = 60_000;

/** How often an actor may be restarted in a while. */
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

  /** Those within the window. */
  get recent(): number {
    const now = this.#clock.now();

    return this.#times.filter((at) => now - at < this.windowMs).length;
  }

  /** Counts one more; false when that is too many. */
  take(): boolean {
    const now = this.#clock.now();
    this.#times = this.#times.filter((at) => now - at < this.windowMs);
    if (this.#times.length >= this.max) return false;
    this.#times.push(now);

    return true;
  }
}
