/** Exponentially smoothed rate of a growing byte count. */
export class SmoothedRate {
  readonly #weight: number;
  /** Bits per second. */
  bps = 0;
  #measuredBytes = 0;

  /** `weight` of the latest interval, 0 to 1. */
  constructor(weight: number) {
    this.#weight = weight;
  }

  /** Takes the total bytes so far. Must be called at a steady interval. */
  measure(bytes: number, intervalMs: number): void {
    const bps = ((bytes - this.#measuredBytes) * 8000) / intervalMs;
    this.#measuredBytes = bytes;
    this.bps += this.#weight * (bps - this.bps);
  }
}
