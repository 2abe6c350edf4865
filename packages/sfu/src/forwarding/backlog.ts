/** Bytes that the queues of one publisher take from its backlog, and those of all publishers of a worker. */
const PUBLISHER_BYTES = 32 * 1024 * 1024;
const WORKER_BYTES = 256 * 1024 * 1024;
/** Bytes that each queue has to itself: a queue that fills the backlog must not starve the others. */
const OWN_BYTES = 512 * 1024;
/** Room for a key picture. Without it there is no point in asking for one. */
const PICTURE_BYTES = 256 * 1024;

/**
 * Bounds the sum of what waits of one publisher's media in the feeds and taps of a room, whatever each of them may hold. The sum
 * over the publishers of a worker is bounded as well.
 */
export class Backlog {
  readonly #limit: number;
  readonly #worker: Backlog | undefined;
  #bytes = 0;

  /** Without `worker` it is the backlog of a worker, otherwise that of one publisher. */
  constructor(worker?: Backlog) {
    this.#worker = worker;
    this.#limit = worker === undefined ? WORKER_BYTES : PUBLISHER_BYTES;
  }

  get free(): number {
    const free = this.#limit - this.#bytes;
    return this.#worker === undefined ? free : Math.min(free, this.#worker.free);
  }

  /** Takes bytes; a negative number gives them back. */
  take(bytes: number): void {
    this.#bytes += bytes;
    this.#worker?.take(bytes);
  }
}

/** One queue: its first bytes are its own, those beyond them come from the backlog of the publisher. */
export class BacklogShare {
  #backlog: Backlog;
  #bytes = 0;

  constructor(backlog: Backlog) {
    this.#backlog = backlog;
  }

  /** Returns whether the queue may hold that many more bytes. To be asked before they are allocated. */
  fits(bytes: number): boolean {
    const more = beyondOwn(this.#bytes + bytes) - beyondOwn(this.#bytes);
    return more <= 0 || more <= this.#backlog.free;
  }

  /** True when the queue has room for a key picture. */
  get fitsPicture(): boolean {
    return this.fits(PICTURE_BYTES);
  }

  add(bytes: number): void {
    this.set(this.#bytes + bytes);
  }

  /** Sets what the queue holds now. */
  set(bytes: number): void {
    this.#backlog.take(beyondOwn(bytes) - beyondOwn(this.#bytes));
    this.#bytes = bytes;
  }

  /** Counts what the queue holds with another publisher. */
  moveTo(backlog: Backlog): void {
    this.#backlog.take(-beyondOwn(this.#bytes));
    this.#backlog = backlog;
    backlog.take(beyondOwn(this.#bytes));
  }
}

function beyondOwn(bytes: number): number {
  return Math.max(0, bytes - OWN_BYTES);
}
