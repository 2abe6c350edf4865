import type { Clock } from '@bloom/time';

/** Maximum number of turns of one wait, in case the clock stands still. */
const MAX_TURNS = 1_000;
/** Maximum number of queries skipped after answers came too late. */
const MAX_LEFT_OUT = 64;

/**
 * Keeps the event loop awake for a moment after a query, as Erlang's schedulers do: waking a process takes about as
 * long as the rest of a call. Other events are still served. Where answers take longer anyway (another machine, a busy
 * one), it soon waits for only one query in 64.
 */
export class BusyWait {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #longestMs: number;
  readonly #nextTurn: (run: () => void) => void;
  #until = 0;
  #turns = 0;
  #waiting = false;
  #leftOut = 0;
  #toLeaveOut = 0;

  constructor(clock: Pick<Clock, 'now'>, longestMs: number, nextTurn: (run: () => void) => void = setImmediate) {
    this.#clock = clock;
    this.#longestMs = longestMs;
    this.#nextTurn = nextTurn;
  }

  /** Starts waiting because a query has been sent. */
  asked(): void {
    if (this.#longestMs <= 0) return;
    if (this.#toLeaveOut > 0) {
      this.#toLeaveOut -= 1;
      return;
    }
    this.#until = this.#clock.now() + this.#longestMs;
    this.#turns = 0;
    if (this.#waiting) return;
    this.#waiting = true;
    this.#nextTurn(this.#turn);
  }

  /** Stops waiting because the other side has sent something. */
  received(): void {
    if (!this.#waiting || this.#until === 0) return;
    this.#until = 0;
    this.#leftOut = 0;
  }

  readonly #turn = (): void => {
    if (this.#until !== 0 && this.#clock.now() < this.#until && this.#turns < MAX_TURNS) {
      this.#turns += 1;
      this.#nextTurn(this.#turn);
      return;
    }
    this.#waiting = false;
    if (this.#until === 0) return;
    this.#leftOut = Math.min(MAX_LEFT_OUT, Math.max(1, this.#leftOut * 2));
    this.#toLeaveOut = this.#leftOut;
  };
}
