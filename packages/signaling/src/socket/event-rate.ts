import type { Clock } from '@bloom/time';

/** Media events that a client may send at once, and per second afterwards. */
const BURST = 1_000;
const PER_SECOND = 200;
/** A large event counts as several. */
const BYTES_PER_EVENT = 4 * 1024;

/** Bounds the rate of one client's media events, each of which may become an event for everyone else in the room. */
export class EventRate {
  readonly #clock: Pick<Clock, 'now'>;
  #left = BURST;
  #refilledAt: number;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#refilledAt = clock.now();
  }

  /** Counts an event. Returns the milliseconds for which no further one should be read: usually 0. */
  count(bytes: number): number {
    const now = this.#clock.now();
    this.#left = Math.min(BURST, this.#left + ((now - this.#refilledAt) * PER_SECOND) / 1_000);
    this.#refilledAt = now;
    this.#left -= 1 + Math.floor(bytes / BYTES_PER_EVENT);

    return this.#left >= 0 ? 0 : (-this.#left * 1_000) / PER_SECOND;
  }
}
