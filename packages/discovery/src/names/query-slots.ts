import { type Clock, Timer } from '@bloom/time';
import { failed } from './resolve-error.js';

/** Maximum number of questions waiting for name servers, with one socket each. */
const MAX_RUNNING = 128;
/** Maximum number of questions that wait for a slot. */
const MAX_WAITING = 4_096;

interface Running {
  /** Time when it gives its slot to a waiting question. */
  readonly dueMs: number;
  readonly end: AbortController;
}

export interface RunOptions {
  /** True to go ahead of all waiting questions. */
  readonly isUrgent: boolean;
  /** Time after which an unanswered question gives its slot to a waiting one. */
  readonly graceMs: number;
}

/**
 * Bounds how many questions are asked at the same time. A healthy name server answers in milliseconds, so when all
 * slots are taken, the question that has been unanswered for longest gives up.
 */
export class QuerySlots {
  readonly #clock: Clock;
  readonly #running = new Set<Running>();
  /** Functions that start the waiting questions, in order. */
  readonly #waiting: (() => void)[] = [];
  readonly #timer: Timer;
  /** Slots of questions that are running or about to run. */
  #taken = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#timer = new Timer(clock);
  }

  /**
   * Runs the work once a slot is free. Its signal is aborted when it must make room.
   * @throws ResolveError FAILED when too many wait
   */
  async run<T>(work: (signal: AbortSignal) => Promise<T>, { isUrgent, graceMs }: RunOptions): Promise<T> {
    if (this.#taken < MAX_RUNNING) this.#taken += 1;
    else await this.#slot(isUrgent);
    const running = { dueMs: this.#clock.now() + graceMs, end: new AbortController() };
    this.#running.add(running);
    this.#watch();
    try {
      return await work(running.end.signal);
    } finally {
      this.#running.delete(running);
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken -= 1;
      else next();
      this.#watch();
    }
  }

  #slot(isUrgent: boolean): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING) throw failed('too many names are being looked up');

    return new Promise((start) => {
      if (isUrgent) this.#waiting.unshift(start);
      else this.#waiting.push(start);
      this.#watch();
    });
  }

  /** Ends the oldest question when its time is up and others wait. */
  #watch(): void {
    const [oldest] = this.#running;
    if (this.#waiting.length === 0 || oldest === undefined) return this.#timer.stop();
    this.#timer.start(Math.max(0, oldest.dueMs - this.#clock.now()), () => oldest.end.abort());
  }
}
