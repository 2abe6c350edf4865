const SIZE = 128;

/** The last 128 indices of one SSRC (RFC 3711 section 3.3.2). Checked before authentication, advanced only after it. */
export class ReplayWindow {
  /** Highest accepted index; -1 before the first. */
  highest = -1;
  /** Bit `index % 128` is set if that index was seen. */
  readonly #bits = new Uint32Array(SIZE / 32);

  /** Returns false for an index that was already seen or is older than the window. */
  isFresh(index: number): boolean {
    if (index < 0) return false;
    if (index > this.highest) return true;
    if (this.highest - index >= SIZE) return false;
    const bit = index % SIZE;
    return (this.#bits[bit >>> 5]! & (1 << (bit & 31))) === 0;
  }

  accept(index: number): void {
    if (index > this.highest) {
      if (index - this.highest >= SIZE) this.#bits.fill(0);
      else for (let gone = this.highest + 1; gone < index; gone += 1) this.#clear(gone % SIZE);
      this.highest = index;
    }
    const bit = index % SIZE;
    this.#bits[bit >>> 5] = this.#bits[bit >>> 5]! | (1 << (bit & 31));
  }

  #clear(bit: number): void {
    this.#bits[bit >>> 5] = this.#bits[bit >>> 5]! & ~(1 << (bit & 31));
  }
}

/**
 * Returns the 48-bit index nearest to the highest so far that has this 16-bit sequence number (RFC 3711 section 3.3.1
 * and appendix A). Negative for a packet from before the first roll-over counter.
 */
export function guessIndex(highest: number, sequence: number): number {
  if (highest < 0) return sequence;
  const newest = highest % 65536;
  const base = highest - newest;
  if (newest < 32768) return sequence - newest > 32768 ? base - 65536 + sequence : base + sequence;
  return newest - 32768 > sequence ? base + 65536 + sequence : base + sequence;
}
