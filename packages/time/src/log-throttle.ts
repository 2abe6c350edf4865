import { systemClock, type Clock } from './clock.js';

const PERIOD_MS = 60_000;
/** Keys may come from outside, so only this many are remembered. */
const MAX_KEYS = 1_000;

/** Allows one log line per key and minute, so that no remote party can fill the log. */
export class LogThrottle {
  readonly #clock: Clock;
  readonly #allowedAt = new Map<string, number>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  allows(key: string): boolean {
    const now = this.#clock.now();
    const before = this.#allowedAt.get(key);
    if (before !== undefined && now - before < PERIOD_MS) return false;

    if (this.#allowedAt.size >= MAX_KEYS) this.#allowedAt.clear();
    this.#allowedAt.set(key, now);
    return true;
  }
}
