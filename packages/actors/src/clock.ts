/** Time as it is handed in, so that a test can hold it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds with fractions that only ever grow, for durations; from where does not matter. Default `now`. */
  fine?(): number;
  /** Runs `run` once after `ms` milliseconds; the result goes to `clearTimeout`. */
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** Node's setTimeout runs at once beyond this, a bit less than 25 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** A timer that is set again until all of its time is over. */
class LongTimeout {
  #timer: NodeJS.Timeout;

  constructor(run: () => void, ms: number) {
    const wait = (left: number): NodeJS.Timeout =>
      setTimeout(
        () => {
          if (left <= LONGEST_MS) run();
          else this.#timer = wait(left - LONGEST_MS);
        },
        Math.min(left, LONGEST_MS),
      );
    this.#timer = wait(ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  fine: () => performance.now(),
  setTimeout: (run, ms) => (ms > LONGEST_MS ? new LongTimeout(run, ms) : setTimeout(run, ms)),
  clearTimeout: (timer) => (timer instanceof LongTimeout ? timer.clear() : clearTimeout(timer as NodeJS.Timeout)),
};

interface Pending {
  at: number;
  order: number;
  run: () => void;
}

/** A clock that stands still until `advance`. For tests of this and other packages. */
export class ManualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs;
  }

  /** Timers that have not run. */
  get pending(): number {
    return this.#pending.size;
  }

  now(): number {
    return this.#now;
  }

  setTimeout(run: () => void, ms: number): unknown {
    const timer: Pending = { at: this.#now + Math.max(0, ms), order: this.#order++, run };
    this.#pending.add(timer);

    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#pending.delete(timer as Pending);
  }

  /** Runs what is due up to then, in order; `settle` (an actor system's `idle`) runs after each timer. */
  async advance(ms: number, settle: () => Promise<void> = async () => {}): Promise<void> {
    const end = this.#now + ms;

    for (;;) {
      const next = this.#next(end);
      if (next === undefined) break;

      this.#pending.delete(next);
      this.#now = next.at;
      next.run();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  #next(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const timer of this.#pending) {
      if (timer.at > end) continue;
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }

    return first;
  }
}
