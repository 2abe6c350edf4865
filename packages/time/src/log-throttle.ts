import { systemClock, type Clock } from './clock.js';

const PERIOD_MS = 60_000;
/** Bound on the lines per period. Keys may come from outside, and a single attacker may use thousands. */
const MAX_KEYS = 1_000;

/**
 * Returns true if event number `count`, counted from 1, should be logged: the 1st, 2nd, 4th, 8th and so on. For events
 * that a remote party can repeat at any rate.
 */
export function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

/** Allows one log line per key and minute, so that no remote party can fill the log. */
export class LogThrottle {
  readonly #clock: Clock;
  /** Keys logged in the last period, oldest first. */
  readonly #allowedAt = new Map<string, number>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  allows(key: string): boolean {
    const now = this.#clock.now();
    for (const [known, at] of this.#allowedAt) {
      if (now - at < PERIOD_MS) break;
      this.#allowedAt.delete(known);
    }
    if (this.#allowedAt.has(key) || this.#allowedAt.size >= MAX_KEYS) return false;

    this.#allowedAt.set(key, now);
    return true;
  }
}
