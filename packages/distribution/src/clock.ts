/** Time as it is handed in. */
export interface Clock {
  /** Milliseconds that only ever grow; from where does not matter. */
  now(): number;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Lets a text through once a minute per key, so that a peer cannot fill the log. Remembers a bounded number of keys. */
export class OncePerMinute {
  private readonly last = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  allows(key: string): boolean {
    const now = this.clock.now();
    const before = this.last.get(key);
    if (before !== undefined && now - before < 60_000) return false;
    if (this.last.size >= 1_000) this.last.clear();
    this.last.set(key, now);
    return true;
  }
}

/**
 * When queued frames are written. What the first callback of a turn sends is written when it has ended and its promises
 * have run, so that an answer leaves at once, and what follows from an answer leaves with it. Whatever comes later in the
 * same turn goes together at its end, so that a busy node writes large batches.
 */
export class TurnFlush {
  private early = true;
  private ending = false;
  private readonly runs: (() => void)[] = [];

  readonly defer = (run: () => void): void => {
    if (!this.early) {
      setImmediate(run);
      return;
    }
    this.runs.push(run);
    if (this.ending) return;
    this.ending = true;
    queueMicrotask(this.awaitTick);
  };

  private readonly awaitTick = (): void => process.nextTick(this.endEarly);

  private readonly endEarly = (): void => {
    const runs = this.runs.splice(0);
    this.early = false;
    this.ending = false;
    setImmediate(this.nextTurn);
    for (const run of runs) run();
  };

  private readonly nextTurn = (): void => {
    this.early = true;
  };
}
