import type { Clock } from '@bloom/time';

/** Turns at most, for a clock that stands still. */
const MAX_TURNS = 1_000;
/** Questions at most that are not waited for after answers did not come in time. */
const MAX_LEFT_OUT = 64;

/**
 * Waits a moment for the answer to a question without letting the event loop sleep, as Erlang's schedulers do: to be
 * woken takes a process about as long as the whole rest of a call. Other events are served meanwhile. Where answers take
 * longer than that moment anyway (another machine, a busy one), it soon tries one question in 64 only.
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

  /** A question is on its way. */
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

  /** Something came from the other side. */
  heard(): void {
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
