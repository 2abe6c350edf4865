/** Upper bounds of the buckets, in milliseconds; the last bucket has none. */
const BUCKET_BOUNDS_MS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1_000, 5_000] as const;

/** Histogram of how long messages took, small enough to keep one for every actor. */
export class Durations {
  /** Sum of all durations, in milliseconds. */
  totalMs = 0;
  #count = 0;
  #buckets: number[] | undefined;

  get count(): number {
    return this.#count;
  }

  /** Records `times` messages of `ms` milliseconds each. */
  record(ms: number, times = 1): void {
    this.#buckets ??= empty();
    let bucket = 0;
    while (bucket < BUCKET_BOUNDS_MS.length && ms > (BUCKET_BOUNDS_MS[bucket] as number)) bucket++;
    this.#buckets[bucket] = (this.#buckets[bucket] as number) + times;
    this.#count += times;
    this.totalMs += ms * times;
  }

  /**
   * Returns the duration that the share `q` of the messages did not exceed, interpolated within its bucket, or null
   * before the first message. Durations beyond the last bound count as that bound.
   */
  quantile(q: number): number | null {
    const buckets = this.#buckets;
    if (buckets === undefined) return null;
    const rank = q * this.#count;
    let below = 0;
    for (let i = 0; i < BUCKET_BOUNDS_MS.length; i++) {
      const inside = buckets[i] as number;
      if (inside > 0 && below + inside >= rank) {
        const from = i === 0 ? 0 : (BUCKET_BOUNDS_MS[i - 1] as number);
        return from + ((BUCKET_BOUNDS_MS[i] as number) - from) * ((rank - below) / inside);
      }
      below += inside;
    }

    return BUCKET_BOUNDS_MS.at(-1) as number;
  }

  /** Messages per bucket, in the order of `BUCKET_BOUNDS_MS`, with one more for longer ones. */
  get buckets(): number[] {
    return this.#buckets?.slice() ?? empty();
  }
}

const EMPTY = [...BUCKET_BOUNDS_MS, 0].map(() => 0);

function empty(): number[] {
  return EMPTY.slice();
}
