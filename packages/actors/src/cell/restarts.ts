import type { Clock } from '@bloom/time';

const DEFAULT_MAX = 3;
const DEFAULT_WINDOW_MS = 60_000;
/** Pause of a permanent actor that was restarted too often; doubles each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** Limits how often an actor is restarted within a window of time. */
export class Restarts {
  readonly max: number;
  readonly windowMs: number;
  readonly #clock: Clock;
  #times: number[] = [];
  #pauseMs = FIRST_PAUSE_MS;

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
    if (this.#times.length === 0) this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#times.length >= this.max) return false;
    this.#times.push(now);

    return true;
  }

  /** Counts the restart of a permanent actor that was one too many, and returns its pause in milliseconds. */
  takeWithPause(): number {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    this.#times.shift();
    this.#times.push(this.#clock.now());

    return pauseMs;
  }
}
