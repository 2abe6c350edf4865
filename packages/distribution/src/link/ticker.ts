import type { Clock } from '../clock.js';

/**
 * One timer for all connections, every quarter of the tick time. After a stalled event loop timers run before the
 * sockets are read, so a round that comes more than one interval late must not judge: everybody looks silent then.
 */
export class Ticker {
  private timer: unknown;
  private due = 0;
  private readonly intervalMs: number;

  constructor(
    private readonly clock: Clock,
    tickTimeMs: number,
    private readonly round: (judge: boolean) => void,
  ) {
    this.intervalMs = tickTimeMs / 4;
  }

  start(): void {
    this.due = this.clock.now() + this.intervalMs;
    this.timer = this.clock.setTimeout(this.run, this.intervalMs);
  }

  stop(): void {
    this.clock.clearTimeout(this.timer);
  }

  private readonly run = (): void => {
    const late = this.clock.now() - this.due > this.intervalMs;
    this.start();
    this.round(!late);
  };
}
