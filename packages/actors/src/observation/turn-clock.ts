import type { Clock } from '@bloom/time';

/** Readings outside of turns, without a turn in between, after which a burst is supposed. */
const BURST = 8;

/**
 * The time that messages are stamped with, without reading the clock for each: what is sent within a turn of an actor
 * has the time of the turn's last reading, and what comes in a burst from outside that of the burst.
 */
export class TurnClock {
  readonly #clock: Pick<Clock, 'now'>;
  #reading = 0;
  #inTurn = false;
  /** Whether the clock has been read in this turn. */
  #fresh = false;
  #held = false;
  #reads = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  stamp(): number {
    if (this.#held || this.#fresh) return this.#reading;
    if (this.#inTurn) return this.read();
    this.#reading = this.#clock.now();
    if (++this.#reads >= BURST) {
      this.#held = true;
      setImmediate(this.#release);
    }

    return this.#reading;
  }

  /** A turn begins. */
  begin(): void {
    this.#inTurn = true;
    this.#reads = 0;
  }

  /** The time within a turn, read anew. */
  read(): number {
    this.#fresh = true;
    this.#reading = this.#clock.now();

    return this.#reading;
  }

  end(): void {
    this.#inTurn = false;
    this.#fresh = false;
  }

  readonly #release = (): void => {
    this.#held = false;
    this.#reads = 0;
  };
}
