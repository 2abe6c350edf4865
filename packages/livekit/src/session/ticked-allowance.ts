import { Allowance, type Rate } from '@bloom/time';

/** Time between two refills. */
export const REFILL_MS = 1_000;

/** A token bucket of a session, whose time is a timer that the session sets. */
export class TickedAllowance {
  readonly #allowance: Allowance;
  readonly #burst: number;
  #nowMs = 0;
  #isTimed = false;

  constructor(rate: Readonly<Rate>) {
    this.#allowance = new Allowance(rate);
    this.#burst = rate.burst;
  }

  /** Tokens that are left; not above 0 for a debt. */
  get left(): number {
    return this.#allowance.left(this.#nowMs);
  }

  /** Takes tokens that may exceed what is left. */
  spend(tokens: number): void {
    this.#allowance.spend(this.#nowMs, tokens);
  }

  /** Returns true if the caller has to start a timer of `REFILL_MS`, after which it calls `refill`. */
  startsTimer(): boolean {
    const starts = !this.#isTimed && this.left < this.#burst;
    if (starts) this.#isTimed = true;

    return starts;
  }

  refill(): void {
    this.#isTimed = false;
    this.#nowMs += REFILL_MS;
  }
}
