/** A bucket of tokens: what a client may do at once, and per second afterwards. */
export class Allowance {
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #countedAtMs = 0;

  constructor(burst: number, perSecond: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
  }

  /** Takes tokens; false when there are too few left. */
  take(nowMs: number, tokens = 1): boolean {
    const refill = ((nowMs - this.#countedAtMs) * this.#perSecond) / 1_000;
    this.#left = Math.min(this.#burst, this.#left + Math.max(0, refill));
    this.#countedAtMs = nowMs;
    if (this.#left < tokens) return false;
    this.#left -= tokens;

    return true;
  }
}
