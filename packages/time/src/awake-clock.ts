import { type Clock, systemClock } from './clock.js';

/** Interval of the time checks while nobody reads the clock. */
const LOOK_MS = 1_000;
/** A longer gap between two checks is a pause of the process. */
const PAUSE_MS = 2_000;

/**
 * A clock that stops while the process does (SIGSTOP, a virtual machine that is moved), for judging whether others are
 * silent: whatever they sent during a pause of at least 2 s is still unread when timers fire after it. An event loop
 * that is blocked for as long counts as paused, so this clock is unsuitable for measuring work.
 */
export class AwakeClock implements Clock {
  readonly #base: Clock;
  #lookedAtMs: number | undefined;
  #pausedMs = 0;

  constructor(base: Clock = systemClock) {
    this.#base = base;
  }

  now(): number {
    const nowMs = this.#base.now();
    if (this.#lookedAtMs === undefined) this.#lookAgain();
    else if (nowMs - this.#lookedAtMs > PAUSE_MS) this.#pausedMs += nowMs - this.#lookedAtMs - LOOK_MS;
    this.#lookedAtMs = nowMs;
    return nowMs - this.#pausedMs;
  }

  wall(): number {
    return this.#base.wall();
  }

  setTimeout(run: () => void, ms: number): unknown {
    const dueMs = this.now() + ms;
    const timer: AwakeTimer = { handle: undefined };
    const wait = (leftMs: number): void => {
      timer.handle = this.#base.setTimeout(() => {
        // Native timers may fire a fraction of a millisecond early.
        const stillMs = dueMs - this.now();
        if (stillMs > 1) wait(stillMs);
        else run();
      }, leftMs);
    };
    wait(ms);
    return timer;
  }

  clearTimeout(handle: unknown): void {
    this.#base.clearTimeout((handle as AwakeTimer | undefined)?.handle);
  }

  #lookAgain(): void {
    const look = this.#base.setTimeout(() => {
      this.#lookAgain();
      this.now();
    }, LOOK_MS);
    // Checks must not keep a process alive; manual clocks have no such handle.
    (look as { unref?: () => void }).unref?.();
  }
}

interface AwakeTimer {
  handle: unknown;
}

/** The `AwakeClock` of this thread. */
export const awakeClock: Clock = new AwakeClock();
