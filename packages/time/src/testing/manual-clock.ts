import type { Clock } from '../clock.js';

interface Pending {
  readonly at: number;
  readonly run: () => void;
}

/** A clock that only moves when a test advances it. `now()` starts at 0. */
export class ManualClock implements Clock {
  #now = 0;
  #wallOffset: number;
  /** Timers in the order in which they were set, which breaks ties. */
  readonly #pending = new Set<Pending>();

  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#wallOffset = wallMs;
  }

  /** Number of timers that have not run yet: zero once everything under test has ended. */
  get pending(): number {
    return this.#pending.size;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wallOffset + this.#now;
  }

  setTimeout(run: () => void, ms: number): unknown {
    const timer: Pending = { at: this.#now + Math.max(0, ms), run };
    this.#pending.add(timer);
    return timer;
  }

  clearTimeout(handle: unknown): void {
    this.#pending.delete(handle as Pending);
  }

  /** Moves only the wall clock, like setting the system time. */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }

  /** Lets `ms` milliseconds pass. Runs due timers in order, including those set by other timers. */
  advance(ms: number): void {
    const end = this.#now + ms;
    while (this.#runNext(end));
    this.#now = end;
  }

  /** Lets `ms` milliseconds pass as if the process were suspended: afterwards every due timer runs once. */
  leap(ms: number): void {
    this.#now += ms;
    const due = [...this.#pending].filter(({ at }) => at <= this.#now).toSorted((a, b) => a.at - b.at);
    for (const timer of due) if (this.#pending.delete(timer)) timer.run();
  }

  /** Like `advance`, but awaits `settle` after each timer and at the end, for example an actor system's `idle`. */
  async advanceAsync(ms: number, settle: () => Promise<void> = async () => {}): Promise<void> {
    const end = this.#now + ms;
    while (this.#runNext(end)) await settle();
    this.#now = end;
    await settle();
  }

  #runNext(end: number): boolean {
    let next: Pending | undefined;
    for (const timer of this.#pending) if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer;
    if (next === undefined) return false;

    this.#pending.delete(next);
    this.#now = next.at;
    next.run();
    return true;
  }
}

/**
 * Waits in real time until `condition` holds, for things that take no clock: sockets, processes, other nodes. Resolves
 * with the elapsed milliseconds. Rejects with the condition's source code after `limitMs`.
 */
export async function until(condition: () => unknown, limitMs = 10_000): Promise<number> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > limitMs) throw new Error(`not so within ${limitMs} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - start;
}
