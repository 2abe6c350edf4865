interface TurnQueueOptions {
  /** Bound on waiting steps. */
  maxWaiting: number;
  /** Steps of one turn of the event loop. */
  perTurn: number;
  /** Runs a function after the event loop has polled the sockets; without it nothing waits. */
  nextTurn?: ((run: () => void) => void) | undefined;
}

/** Steps done before the list of them is cut. */
const CUT_AFTER = 1_024;

/**
 * Lets work wait for media: a few of its steps are done per turn of the event loop, so that a crowd that joins at once, or a flood
 * of data, delays media packets by no more than these steps.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  #waiting: (() => void)[] = [];
  #next = 0;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
  }

  /** Returns false when too many wait and this one is dropped. `step` must not throw. */
  add(step: () => void): boolean {
    const { nextTurn, maxWaiting } = this.#options;
    if (nextTurn === undefined) {
      step();
      return true;
    }
    const waiting = this.#waiting.length - this.#next;
    if (waiting >= maxWaiting) return false;
    this.#waiting.push(step);
    if (waiting === 0) nextTurn(this.#run);
    return true;
  }

  readonly #run = (): void => {
    const { perTurn, nextTurn } = this.#options;
    const first = this.#next;
    const end = Math.min(first + perTurn, this.#waiting.length);
    const steps = this.#waiting;
    this.#next = end;
    if (end === steps.length) {
      this.#waiting = [];
      this.#next = 0;
    } else if (end >= CUT_AFTER) {
      this.#waiting = steps.slice(end);
      this.#next = 0;
    }
    // The next turn is requested first: a step that throws must not stop the queue.
    if (this.#waiting.length > this.#next) nextTurn?.(this.#run);
    for (let index = first; index < end; index++) steps[index]?.();
  };
}
