/** Time as the machines see it: handed in, so that tests move it. */
export interface Clock {
  /** Milliseconds from any origin; never goes back. */
  now(): number;
  /** Runs `run` once after `ms` milliseconds; the result goes to `clearTimeout`. */
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export const monotonicClock: Clock = {
  now: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** A timer that is at most once under way. */
export class Timer {
  readonly #clock: Clock;
  #handle: unknown;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get running(): boolean {
    return this.#handle !== undefined;
  }

  start(ms: number, run: () => void): void {
    this.stop();
    this.#handle = this.#clock.setTimeout(() => {
      this.#handle = undefined;
      run();
    }, ms);
  }

  stop(): void {
    if (this.#handle === undefined) return;
    this.#clock.clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}
