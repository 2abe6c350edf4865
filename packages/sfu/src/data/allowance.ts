/** A token bucket: what a client may do in a burst, and per second after that. */
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

  /** Takes tokens; returns false if too few are left. */
  take(nowMs: number, tokens = 1): boolean {
    const refill = ((nowMs - this.#countedAtMs) * this.#perSecond) / 1_000;
    this.#left = Math.min(this.#burst, this.#left + Math.max(0, refill));
    this.#countedAtMs = nowMs;
    if (this.#left < tokens) return false;
    this.#left -= tokens;

    return true;
  }
}
