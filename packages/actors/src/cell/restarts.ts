import type { Clock } from '@bloom/time';

const DEFAULT_MAX = 3;
const DEFAULT_WINDOW_MS = 60_000;
/** Pause of a permanent actor that restarted too often. It doubles each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** The faults of an actor, and the limit of how often it restarts within a time window. Created at the first fault. */
export class Restarts {
  /** Set by a kill until the current message is handled, and by a fault until the actor has restarted. */
  fault: { error: unknown } | undefined;
  /** Timer of the pause after too many restarts. */
  pause: unknown;
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

  /** Number of restarts within the window. */
  get recent(): number {
    const now = this.#clock.now();

    return this.#times.filter((at) => now - at < this.windowMs).length;
  }

  /** Counts one restart. Returns false if it exceeds the limit. */
  take(): boolean {
    const now = this.#clock.now();
    this.#times = this.#times.filter((at) => now - at < this.windowMs);
    if (this.#times.length === 0) this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#times.length >= this.max) return false;
    this.#times.push(now);

    return true;
  }

  /** Counts a permanent actor's restart beyond the limit. Returns its pause in milliseconds. */
  takeWithPause(): number {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    this.#times.shift();
    this.#times.push(this.#clock.now());

    return pauseMs;
  }
}
