import { systemClock, type Clock } from './clock.js';

/** A timer with at most one pending run: starting it again cancels the earlier one. */
export class Timer {
  readonly #clock: Clock;
  #handle: unknown;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  get running(): boolean {
    return this.#handle !== undefined;
  }

  /** Calls `run` once after `ms` milliseconds. */
  start(ms: number, run: () => void): void {
    this.stop();
    this.#handle = this.#clock.setTimeout(() => {
      this.#handle = undefined;
      run();
    }, ms);
  }

  /** Calls `run` every `ms` milliseconds until the timer is stopped or restarted. */
  repeat(ms: number, run: () => void): void {
    this.start(ms, () => {
      this.repeat(ms, run);
      run();
    });
  }

  stop(): void {
    if (this.#handle === undefined) return;
    this.#clock.clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}
