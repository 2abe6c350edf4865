/** Bytes that one publisher's queues may take from its backlog, and bytes for all publishers of a worker. */
const PUBLISHER_BYTES = 32 * 1024 * 1024;
const WORKER_BYTES = 256 * 1024 * 1024;
/** Bytes reserved for each queue: one that fills the backlog must not starve the others. */
const OWN_BYTES = 512 * 1024;
/** Room for a key picture. Below this, requesting one is pointless. */
const PICTURE_BYTES = 256 * 1024;

/**
 * Limits the total media of one publisher queued in a room's feeds and taps, whatever each of them may hold. The total
 * over a worker's publishers is limited as well.
 */
export class Backlog {
  readonly #limit: number;
  readonly #worker: Backlog | undefined;
  #bytes = 0;

  /** Without `worker`, this is the backlog of a worker; otherwise it is that of one publisher. */
  constructor(worker?: Backlog) {
    this.#worker = worker;
    this.#limit = worker === undefined ? WORKER_BYTES : PUBLISHER_BYTES;
  }

  get free(): number {
    const free = this.#limit - this.#bytes;
    return this.#worker === undefined ? free : Math.min(free, this.#worker.free);
  }

  /** Takes bytes; a negative number returns them. */
  take(bytes: number): void {
    this.#bytes += bytes;
    this.#worker?.take(bytes);
  }
}

/** One queue: its first bytes are reserved, the rest comes from the publisher's backlog. */
export class BacklogShare {
  #backlog: Backlog;
  #bytes = 0;

  constructor(backlog: Backlog) {
    this.#backlog = backlog;
  }

  /** Returns whether the queue may hold this many more bytes. Call it before allocating them. */
  fits(bytes: number): boolean {
    const more = beyondOwn(this.#bytes + bytes) - beyondOwn(this.#bytes);
    return more <= 0 || more <= this.#backlog.free;
  }

  /** True if the queue has room for a key picture. */
  get fitsPicture(): boolean {
    return this.fits(PICTURE_BYTES);
  }

  add(bytes: number): void {
    this.set(this.#bytes + bytes);
  }

  /** Sets how many bytes the queue holds now. */
  set(bytes: number): void {
    this.#backlog.take(beyondOwn(bytes) - beyondOwn(this.#bytes));
    this.#bytes = bytes;
  }

  /** Moves the queue's bytes to another publisher's backlog. */
  moveTo(backlog: Backlog): void {
    this.#backlog.take(-beyondOwn(this.#bytes));
    this.#backlog = backlog;
    backlog.take(beyondOwn(this.#bytes));
  }
}

function beyondOwn(bytes: number): number {
  return Math.max(0, bytes - OWN_BYTES);
}
