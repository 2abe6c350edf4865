import { Allowance, type Rate } from './allowance.js';
import type { Clock } from './clock.js';

/** Maximum number of keys counted at a time. */
const MAX_COUNTED = 10_000;
const SWEEP_EVERY_MS = 1_000;

/** An allowance for each key. When too many keys are in use, new ones get none. */
export class Allowances {
  readonly #rate: Rate;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #used = new Map<string, Allowance>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(rate: Rate, clock: Pick<Clock, 'now'>) {
    this.#rate = rate;
    this.#clock = clock;
  }

  take(key: string): boolean {
    const now = this.#clock.now();
    const known = this.#used.get(key);
    if (known !== undefined) return known.take(now);
    if (this.#used.size >= MAX_COUNTED && now - this.#sweptAtMs >= SWEEP_EVERY_MS) {
      this.#sweptAtMs = now;
      for (const [each, allowance] of this.#used) if (allowance.left(now) >= this.#rate.burst) this.#used.delete(each);
    }
    if (this.#used.size >= MAX_COUNTED) return false;
    const allowance = new Allowance(this.#rate);
    this.#used.set(key, allowance);

    return allowance.take(now);
  }
}
