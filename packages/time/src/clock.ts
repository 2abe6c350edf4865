/** Source of time, passed in so that tests can control it. */
export interface Clock {
  /** Returns monotonic milliseconds with fractions, from an arbitrary origin: for durations and deadlines. */
  now(): number;
  /** Returns Unix milliseconds: for timestamps that leave the process. Jumps when the system time is set. */
  wall(): number;
  /** Calls `run` once after `ms` milliseconds. Returns the handle for `clearTimeout`. */
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** Longest delay of a Node timer, slightly less than 25 days: it fires immediately if the delay exceeds 31 bits. */
const LONGEST_MS = 2 ** 31 - 1;

/** Chains native timers to wait longer than a single one can. */
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
 * Returns Unix milliseconds that are monotonic and agree between the threads of a process. They deviate from `wall`
 * once the system time is set.
 */
export function epochNow(): number {
  return performance.timeOrigin + performance.now();
}
