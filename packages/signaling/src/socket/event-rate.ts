import type { Clock } from '@bloom/time';

/** Media events that a client may send in a burst, and per second afterwards. */
const BURST = 1_000;
const PER_SECOND = 200;
/** Bytes that count as one event, so a large event counts as several. */
const BYTES_PER_EVENT = 4 * 1024;
/** Repetitions that count as one event. They change nothing and go no further than the socket. */
const REPETITIONS_PER_EVENT = 20;

/** Limits the rate of a client's media events, each of which may become an event for everyone else in the room. */
export class EventRate {
  readonly #clock: Pick<Clock, 'now'>;
  #left = BURST;
  #refilledAt: number;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#refilledAt = clock.now();
  }

  /** Counts an event. Returns for how many milliseconds to stop reading; usually 0. */
  count(bytes: number): number {
    return this.#take(1 + Math.floor(bytes / BYTES_PER_EVENT));
  }

  /** Counts a short event that repeats an earlier one. Returns the same as `count`. */
  countRepetition(): number {
    return this.#take(1 / REPETITIONS_PER_EVENT);
  }

  #take(events: number): number {
    const now = this.#clock.now();
    this.#left = Math.min(BURST, this.#left + ((now - this.#refilledAt) * PER_SECOND) / 1_000);
    this.#refilledAt = now;
    this.#left -= events;

    return this.#left >= 0 ? 0 : (-this.#left * 1_000) / PER_SECOND;
  }
}
