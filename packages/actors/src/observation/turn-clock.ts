import type { Clock } from '@bloom/time';

/** Readings outside of turns, without a turn in between, that count as a burst. */
const BURST = 8;

/**
 * Stamps messages with the time without reading the clock for each. Messages sent within a turn of an actor have the
 * time of the turn's last reading; messages that come in a burst from outside have that of the burst.
 */
export class TurnClock {
  readonly #clock: Pick<Clock, 'now'>;
  #reading = 0;
  #inTurn = false;
  /** True once the clock has been read in this turn. */
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

  /** Begins a turn. */
  begin(): void {
    this.#inTurn = true;
    this.#reads = 0;
  }

  /** Reads the time within a turn anew. */
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
