/**
 * FIFO over a ring buffer that grows by doubling. The caller checks the limit and knows which messages may exceed it.
 */
export class Mailbox<T> {
  #ring = Array.from<T | undefined>({ length: 8 });
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    if (this.#size === this.#ring.length) this.#grow();
    this.#ring[(this.#head + this.#size) & (this.#ring.length - 1)] = item;
    this.#size++;
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined;

    const item = this.#ring[this.#head];
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#size--;
    // A burst must not pin its memory for the rest of the actor's life.
    if (this.#size === 0 && this.#ring.length > 1024) {
      this.#ring = Array.from<T | undefined>({ length: 8 });
      this.#head = 0;
    }

    return item;
  }

  /** The oldest item, without removing it. */
  get head(): T | undefined {
    return this.#ring[this.#head];
  }

  /** Iterates over the waiting items, oldest first. The mailbox must not change during the iteration. */
  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#size; i++) yield this.#ring[(this.#head + i) & (this.#ring.length - 1)] as T;
  }

  /** Empties the mailbox and returns its items, oldest first. */
  drain(): T[] {
    const items: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) items.push(item);

    return items;
  }

  #grow(): void {
    const ring = Array.from<T | undefined>({ length: this.#ring.length * 2 });
    for (let i = 0; i < this.#size; i++) ring[i] = this.#ring[(this.#head + i) & (this.#ring.length - 1)];
    this.#ring = ring;
    this.#head = 0;
  }
}
