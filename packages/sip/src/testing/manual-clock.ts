import type { Clock } from '../clock.js';
import type { Randomness } from '../randomness.js';

/** For tests: time passes only when told. */
export class ManualClock implements Clock {
  #now = 0;
  #next = 1;
  readonly #timers = new Map<number, { at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  setTimeout(run: () => void, ms: number): unknown {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#now + ms, run });
    return id;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  /** How many timers are under way: what has ended must leave none. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets time pass; timers run in their order, those they start included. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end).toSorted((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#now = Math.max(this.#now, due[1].at);
      due[1].run();
    }
    this.#now = end;
  }
}

/** For tests: tokens are counted, numbers are always in the middle. */
export function countedRandomness(): Randomness {
  let count = 0;
  return {
    token: () => `t${++count}`,
    below: (below) => Math.floor(below / 2),
  };
}
