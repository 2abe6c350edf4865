/** Bound on the bytes queued for one receiver. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Bound on the messages queued for one receiver. */
const MAX_WAITING_MESSAGES = 4_096;

export interface QueuedMessage {
  stream: number;
  /** True if the message must never be dropped once queued. */
  reliable: boolean;
  /** Header and message, shared by all receivers. */
  frame: Buffer;
}

/** Messages queued for one receiver. Reliable and lossy messages alternate; each kind keeps its order. */
export class SendQueue<M extends QueuedMessage> {
  readonly #reliable = new Fifo<M>();
  readonly #lossy = new Fifo<M>();
  #bytes = 0;
  #reliableNext = true;
  /** Lossy messages dropped so far. */
  dropped = 0;

  get length(): number {
    return this.#reliable.length + this.#lossy.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds a message and drops the oldest lossy ones to make room. Returns false when a reliable message does not fit:
   * the caller must close its channel.
   */
  push(message: M): boolean {
    const { length } = message.frame;
    while (this.#bytes + length > MAX_WAITING_BYTES || this.length >= MAX_WAITING_MESSAGES) {
      const oldest = this.#lossy.shift();
      if (oldest === undefined) {
        if (message.reliable) return false;
        this.dropped++;
        return true;
      }
      this.#bytes -= oldest.frame.length;
      this.dropped++;
    }
    this.#bytes += length;
    (message.reliable ? this.#reliable : this.#lossy).push(message);
    return true;
  }

  shift(): M | undefined {
    const first = this.#reliableNext ? this.#reliable : this.#lossy;
    const second = this.#reliableNext ? this.#lossy : this.#reliable;
    this.#reliableNext = !this.#reliableNext;
    const message = first.shift() ?? second.shift();
    if (message !== undefined) this.#bytes -= message.frame.length;
    return message;
  }

  /** Drops the queued messages of a closed channel. */
  forget(stream: number): void {
    for (const fifo of [this.#reliable, this.#lossy]) {
      for (const { frame } of fifo.remove((message) => message.stream === stream)) this.#bytes -= frame.length;
    }
  }
}

class Fifo<T> {
  #items: T[] = [];
  #next = 0;

  get length(): number {
    return this.#items.length - this.#next;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#next];
    this.#next++;
    if (this.#next >= 256 || this.length === 0) {
      this.#items = this.#items.slice(this.#next);
      this.#next = 0;
    }
    return item;
  }

  remove(isRemoved: (item: T) => boolean): T[] {
    const items = this.#items.slice(this.#next);
    this.#items = items.filter((item) => !isRemoved(item));
    this.#next = 0;
    return items.filter(isRemoved);
  }
}
