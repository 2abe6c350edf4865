import { Allowance, type Clock } from '@bloom/time';

/** Media events that a client may send in a burst, and per second afterwards. */
const EVENTS = { burst: 1_000, perSecond: 200 };
/** Bytes that count as one event, so a large event counts as several. */
const BYTES_PER_EVENT = 4 * 1024;
/** Repetitions that count as one event. They change nothing and never leave the socket. */
const REPETITIONS_PER_EVENT = 20;

/** Limits the rate of a client's media events, each of which may become an event for everyone else in the room. */
export class EventRate {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #events = new Allowance(EVENTS);

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Counts an event. Returns how many milliseconds to stop reading for; usually 0. */
  count(bytes: number): number {
    return this.#events.spend(this.#clock.now(), 1 + Math.floor(bytes / BYTES_PER_EVENT));
  }

  /** Counts a short event that repeats an earlier one. Returns the same as `count`. */
  countRepetition(): number {
    return this.#events.spend(this.#clock.now(), 1 / REPETITIONS_PER_EVENT);
  }
}
