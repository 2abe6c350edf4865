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
