export interface Rate {
  /** Tokens that may be taken at once. */
  burst: number;
  /** Tokens that are regained per second. */
  perSecond: number;
}

/** Token bucket that starts full. Reads no clock: callers pass milliseconds with any origin that do not go back. */
export class Allowance {
  readonly #rate: Readonly<Rate>;
  /** Below 0 for a debt. */
  #left: number;
  #countedAtMs = 0;

  constructor(rate: Readonly<Rate>) {
    this.#rate = rate;
    this.#left = rate.burst;
  }

  /** Returns the tokens that are left; negative for a debt. */
  left(nowMs: number): number {
    const elapsedMs = Math.max(0, nowMs - this.#countedAtMs);
    this.#left = Math.min(this.#rate.burst, this.#left + (elapsedMs * this.#rate.perSecond) / 1_000);
    this.#countedAtMs = nowMs;

    return this.#left;
  }

  /** Takes tokens if enough are left. Returns false, and takes none, if there are too few. */
  take(nowMs: number, tokens = 1): boolean {
    if (this.left(nowMs) < tokens) return false;
    this.#left -= tokens;

    return true;
  }

  /** Takes tokens that may exceed what is left. Returns the milliseconds until the debt is paid back, 0 without one. */
  spend(nowMs: number, tokens: number): number {
    this.#left = this.left(nowMs) - tokens;

    return this.#left >= 0 ? 0 : (-this.#left * 1_000) / this.#rate.perSecond;
  }
}
