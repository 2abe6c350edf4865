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

  /** Takes one token; false when there is none left. */
  take(nowMs: number): boolean {
    const refill = ((nowMs - this.#countedAtMs) * this.#perSecond) / 1_000;
    this.#left = Math.min(this.#burst, this.#left + Math.max(0, refill));
    this.#countedAtMs = nowMs;
    if (this.#left < 1) return false;
    this.#left--;

    return true;
  }
}
