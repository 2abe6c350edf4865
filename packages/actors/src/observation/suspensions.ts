import type { Clock } from '@bloom/time';
import type { AnyRef } from '../ref.js';

/** Ends suspensions of actors when their time is up. */
export class Suspensions {
  readonly #clock: Clock;
  readonly #ends = new Map<string, { until: number; timer: unknown }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Replaces the planned end of this actor's suspension. Without `forMs` the suspension has no end. */
  set(ref: AnyRef, forMs: number | undefined, resume: () => void): void {
    this.clear(ref);
    if (forMs === undefined) return;
    const timer = this.#clock.setTimeout(() => {
      this.#ends.delete(ref.key);
      resume();
    }, forMs);
    this.#ends.set(ref.key, { until: this.#clock.wall() + forMs, timer });
  }

  clear(ref: AnyRef): void {
    const end = this.#ends.get(ref.key);
    if (end === undefined) return;
    this.#clock.clearTimeout(end.timer);
    this.#ends.delete(ref.key);
  }

  until(ref: AnyRef): number | null {
    return this.#ends.get(ref.key)?.until ?? null;
  }
}
