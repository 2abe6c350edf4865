import type { Clock } from '@bloom/time';

/** Number of readings outside turns, with no turn between them, that counts as a burst. */
const BURST = 8;

/**
 * Timestamps messages without reading the clock for each one. Messages sent within an actor's turn get the time of the
 * turn's last reading; messages in a burst from outside get the time of the burst.
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

  /** Reads the clock again within a turn. */
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
