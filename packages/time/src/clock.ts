/** Source of time. Passed in rather than imported, so that tests control it. */
export interface Clock {
  /** Monotonic milliseconds with fractions, from an arbitrary origin: for durations and deadlines. */
  now(): number;
  /** Unix milliseconds: for timestamps that leave the process. May jump when the machine's time is set. */
  wall(): number;
  /** Calls `run` once after `ms` milliseconds. Returns the handle that `clearTimeout` takes. */
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** Node fires a timer at once when its delay does not fit into 31 bits, a little less than 25 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** Chains native timers to wait longer than one of them can. */
class LongTimeout {
  #timer: NodeJS.Timeout;

  constructor(run: () => void, ms: number) {
    const wait = (leftMs: number): NodeJS.Timeout =>
      setTimeout(
        () => {
          if (leftMs <= LONGEST_MS) run();
          else this.#timer = wait(leftMs - LONGEST_MS);
        },
        Math.min(leftMs, LONGEST_MS),
      );
    this.#timer = wait(ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  setTimeout: (run, ms) => (ms > LONGEST_MS ? new LongTimeout(run, ms) : setTimeout(run, ms)),
  clearTimeout: (handle) => {
    if (handle instanceof LongTimeout) handle.clear();
    else clearTimeout(handle as NodeJS.Timeout);
  },
};

/**
 * Returns Unix milliseconds that never go back and agree between the threads of a process. They part from `wall` when the
 * machine's time is set.
 */
export function epochNow(): number {
  return performance.timeOrigin + performance.now();
}
