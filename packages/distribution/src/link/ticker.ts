import type { Clock } from '@bloom/time';

/**
 * One timer for all connections, every quarter of the tick time. After a stall of the event loop, timers run before
 * sockets are read and every node looks silent, so a round that is more than one interval late must not judge.
 */
export class Ticker {
  readonly #clock: Clock;
  readonly #round: (judge: boolean) => void;
  #timer: unknown;
  #due = 0;
  readonly #intervalMs: number;

  constructor(clock: Clock, tickTimeMs: number, round: (judge: boolean) => void) {
    this.#clock = clock;
    this.#round = round;
    this.#intervalMs = tickTimeMs / 4;
  }

  start(): void {
    this.#due = this.#clock.now() + this.#intervalMs;
    this.#timer = this.#clock.setTimeout(this.#run, this.#intervalMs);
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  readonly #run = (): void => {
    const late = this.#clock.now() - this.#due > this.#intervalMs;
    this.start();
    this.#round(!late);
  };
}
