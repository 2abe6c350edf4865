import type { Ref } from '@bloom/etf';

/**
 * Maps references to the values that contain them. References of one node nearly always differ in their first two
 * words, which form a number; numbers are found several times faster than text.
 */
export class RefMap<T extends { readonly ref: Ref }> {
  readonly #fast = new Map<number, T>();
  /** Values with the same number as another one. */
  readonly #rest = new Map<string, T>();

  get size(): number {
    return this.#fast.size + this.#rest.size;
  }

  /** Replaces the value with an equal reference. */
  set(value: T): void {
    const { ref } = value;
    const key = numberOf(ref);
    const found = this.#fast.get(key);
    if (found === undefined ? !this.#rest.has(textOf(ref)) : isSame(found.ref, ref)) this.#fast.set(key, value);
    else this.#rest.set(textOf(ref), value);
  }

  /** Removes and returns the value. */
  take(ref: Ref): T | undefined {
    const key = numberOf(ref);
    const found = this.#fast.get(key);
    if (found !== undefined && isSame(found.ref, ref)) {
      this.#fast.delete(key);
      return found;
    }
    if (this.#rest.size === 0) return undefined;
    const text = textOf(ref);
    const other = this.#rest.get(text);
    this.#rest.delete(text);
    return other;
  }

  *[Symbol.iterator](): Iterator<T> {
    yield* this.#fast.values();
    yield* this.#rest.values();
  }

  clear(): void {
    this.#fast.clear();
    this.#rest.clear();
  }
}

/** Exact below 2^53: the first word of a reference has 18 bits, the second 32. */
function numberOf({ words }: Ref): number {
  return (words[0] ?? 0) + (words[1] ?? 0) * 0x40000;
}

function textOf({ creation, words }: Ref): string {
  return `${creation} ${words.join('.')}`;
}

function isSame(a: Ref, b: Ref): boolean {
  if (a === b) return true;
  if (a.creation !== b.creation || a.words.length !== b.words.length) return false;
  for (let i = a.words.length - 1; i >= 0; i--) if (a.words[i] !== b.words[i]) return false;
  return true;
}
