export interface BackoffOptions {
  /** Delay after the first failure. */
  firstMs: number;
  /** Longest delay. */
  mostMs: number;
  /** Returns a number from 0 to below 1. */
  random: () => number;
}

/**
 * Delays between attempts. The delay doubles with each failure of the same cause, so that a lasting outage costs
 * little. Up to a tenth is added at random, so that clients that failed together do not return together.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #cause: string | undefined;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Returns the delay after a failure, at least `atLeastMs`. A new cause starts over. */
  failed(cause: string, atLeastMs = 0): number {
    const { firstMs, mostMs, random } = this.#options;
    this.#failures = cause === this.#cause ? this.#failures + 1 : 1;
    this.#cause = cause;
    const delayMs = Math.max(atLeastMs, Math.min(mostMs, firstMs * 2 ** Math.min(30, this.#failures - 1)));

    return Math.round(delayMs * (1 + random() / 10));
  }

  succeeded(): void {
    this.#cause = undefined;
    this.#failures = 0;
  }
}
