import type { FineClock } from './request.js';

/** Readings outside of turns, without a turn in between, after which a burst is supposed. */
const BURST = 8;

/**
 * The time that messages are stamped with, without reading the clock for each: what is sent within a turn of an actor
 * has the time of the turn's last reading, and what comes in a burst from outside that of the burst.
 */
export class TurnClock {
  readonly #clock: FineClock;
  #reading = 0;
  #inTurn = false;
  #held = false;
  #reads = 0;

  constructor(clock: FineClock) {
    this.#clock = clock;
  }

  stamp(): number {
    if (this.#inTurn || this.#held) return this.#reading;
    this.#reading = this.#clock.now();
    if (++this.#reads >= BURST) {
      this.#held = true;
      setImmediate(this.#release);
    }

    return this.#reading;
  }

  /** A turn begins; the clock is read when the turn is to be measured. */
  begin(measured: boolean): number {
    this.#inTurn = true;
    this.#reads = 0;

    return measured ? this.read() : this.#reading;
  }

  /** The time within a turn, read anew. */
  read(): number {
    this.#reading = this.#clock.now();

    return this.#reading;
  }

  end(): void {
    this.#inTurn = false;
  }

  readonly #release = (): void => {
    this.#held = false;
    this.#reads = 0;
  };
}
