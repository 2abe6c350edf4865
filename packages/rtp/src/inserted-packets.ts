/** Number of inserted packets whose place is remembered. */
const MEMORY = 64;

/**
 * Numbers the packets of a stream into which others are inserted: each one moves those after it by one. Sequence
 * numbers are unwrapped. Packets from before the last 64 insertions get wrong numbers.
 */
export class InsertedPackets {
  #count = 0;
  /** Our numbers of the inserted packets; a ring. */
  readonly #numbers = new Float64Array(MEMORY);

  /** Inserts a packet before the sender's packet with this number, the newest one. Returns its own number. */
  insertBefore(senders: number): number {
    const ours = senders + this.#count;
    this.#numbers[this.#count % MEMORY] = ours;
    this.#count += 1;

    return ours;
  }

  /** Returns our number of the sender's packet. */
  oursOf(senders: number): number {
    let before = this.#count;
    while (this.#remembers(before - 1) && this.#numbers[(before - 1) % MEMORY]! - (before - 1) > senders) before -= 1;

    return senders + before;
  }

  /** Returns the sender's number of a packet that was not inserted. */
  sendersOf(ours: number): number {
    let before = this.#count;
    while (this.#remembers(before - 1) && this.#numbers[(before - 1) % MEMORY]! > ours) before -= 1;

    return ours - before;
  }

  #remembers(insertion: number): boolean {
    return insertion >= 0 && insertion >= this.#count - MEMORY;
  }
}
