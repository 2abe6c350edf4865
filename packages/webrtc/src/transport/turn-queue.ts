interface TurnQueueOptions {
  /** Bound on queued steps. */
  maxWaiting: number;
  /** Number of steps run per turn of the event loop. */
  perTurn: number;
  /** Runs a function after the event loop has polled the sockets. Without it, steps run immediately. */
  nextTurn?: ((run: () => void) => void) | undefined;
}

/** Number of completed steps after which the list is trimmed. */
const CUT_AFTER = 1_024;

/**
 * Makes work yield to media: only a few steps run per turn of the event loop, so that a crowd joining at once, or a
 * flood of data, delays media packets by no more than these steps.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  #waiting: (() => void)[] = [];
  #next = 0;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
  }

  /** Adds a step, which must not throw. Returns false if it was dropped because too many are queued. */
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
    // Request the next turn first: a step that throws must not stop the queue.
    if (this.#waiting.length > this.#next) nextTurn?.(this.#run);
    for (let index = first; index < end; index++) steps[index]?.();
  };
}
