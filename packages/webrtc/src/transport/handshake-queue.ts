/** Bound on waiting datagrams; clients repeat what is dropped. */
const MAX_WAITING = 512;

/**
 * Lets handshakes wait for media: one of their datagrams is handled per turn of the event loop, so that a crowd that joins at
 * once delays media packets by no more than one step of one handshake.
 */
export class HandshakeQueue {
  readonly #nextTurn: ((run: () => void) => void) | undefined;
  #waiting: (() => void)[] = [];
  #next = 0;

  /** `nextTurn` runs a function after the event loop has polled the sockets; without it nothing waits. */
  constructor(nextTurn?: (run: () => void) => void) {
    this.#nextTurn = nextTurn;
  }

  /** Returns false when too many wait and this one is dropped. `handle` must not throw. */
  add(handle: () => void): boolean {
    if (this.#nextTurn === undefined) {
      handle();
      return true;
    }
    const waiting = this.#waiting.length - this.#next;
    if (waiting >= MAX_WAITING) return false;
    this.#waiting.push(handle);
    if (waiting === 0) this.#nextTurn(this.#run);
    return true;
  }

  readonly #run = (): void => {
    const handle = this.#waiting[this.#next];
    this.#next++;
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    } else {
      this.#nextTurn?.(this.#run);
    }
    handle?.();
  };
}
