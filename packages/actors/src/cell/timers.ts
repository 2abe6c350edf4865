import type { Clock } from '@bloom/time';
import type { TimerState } from '../envelope.js';

/** The named timers of one actor. */
export class Timers {
  readonly #clock: Clock;
  readonly #timers = new Map<string, TimerState>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get names(): string[] {
    return [...this.#timers.keys()];
  }

  get all(): readonly TimerState[] {
    return [...this.#timers.values()];
  }

  /** Starts or restarts a timer. `run` receives the start it belongs to. */
  set(name: string, ms: number, run: (timer: TimerState) => void): void {
    this.clear(name);
    const timer: TimerState = { name, dueAt: this.#clock.wall() + ms, handle: undefined };
    timer.handle = this.#clock.setTimeout(() => run(timer), ms);
    this.#timers.set(name, timer);
  }

  /** Removes a timer whose message is being handled. Returns false if it has been cleared or restarted since. */
  take(timer: TimerState): boolean {
    return this.#timers.get(timer.name) === timer && this.#timers.delete(timer.name);
  }

  clear(name: string): void {
    const timer = this.#timers.get(name);
    if (timer === undefined) return;
    this.#clock.clearTimeout(timer.handle);
    this.#timers.delete(name);
  }

  clearAll(): void {
    for (const { handle } of this.#timers.values()) this.#clock.clearTimeout(handle);
    this.#timers.clear();
  }
}
