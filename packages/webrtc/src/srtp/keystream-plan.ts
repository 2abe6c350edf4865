/** Bound on the packets of a batch: a larger one would only delay the first of many short packets. */
const MAX_PACKETS = 64;

/**
 * Plans the packets of one SSRC whose keystream a single call generates: the requested packet and the next few, each as
 * long as the stream's recent packets. The owner stores the bytes.
 */
export class KeystreamPlan {
  /** The plan covers indices `[first, first + packets)`. */
  first = 0;
  packets = 0;
  bytesEach = 0;
  #longest = 0;
  #longestBefore = 0;

  covers(index: number, length: number): boolean {
    if (length > this.#longest) this.#longest = length;
    return index >= this.first && index < this.first + this.packets && length <= this.bytesEach;
  }

  /** Plans the next batch, starting with this packet, in at most `limit` bytes. */
  advance(index: number, length: number, limit: number): void {
    const longest = Math.max(length, this.#longest, this.#longestBefore);
    this.#longestBefore = this.#longest;
    this.#longest = length;
    this.bytesEach = Math.max(16, Math.min(limit & ~15, (longest + 63) & ~63));
    this.packets = Math.max(1, Math.min(MAX_PACKETS, Math.floor(limit / this.bytesEach)));
    this.first = index;
  }
}
