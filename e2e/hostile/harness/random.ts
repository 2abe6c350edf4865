/** Random numbers from a seed (mulberry32): the same seed gives the same attack. */
export class Random {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.below(256);
    return bytes;
  }

  /** Returns one of the values, with probabilities by weight. */
  weighted<T extends { readonly weight?: number }>(values: readonly T[]): T {
    let left = this.next() * values.reduce((sum, { weight = 1 }) => sum + weight, 0);
    return values.find(({ weight = 1 }) => (left -= weight) < 0) ?? (values[0] as T);
  }
}
