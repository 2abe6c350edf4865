import type { Clock } from '@bloom/time';

/** Maximum duration of a cut, so that a forgotten one ends by itself. */
const MAX_CUT_MS = 3_600_000;

/** Nodes that an operator has cut off for a while. */
export class Cuts {
  readonly #clock: Clock;
  readonly #over: (node: string) => void;
  readonly #cuts = new Map<string, { until: number; timer: unknown }>();

  constructor(clock: Clock, over: (node: string) => void) {
    this.#clock = clock;
    this.#over = over;
  }

  /** Starts a cut, replacing an earlier one of the same node. */
  begin(node: string, ms: number): void {
    const lasts = Math.min(Math.max(0, ms), MAX_CUT_MS);
    this.#clock.clearTimeout(this.#cuts.get(node)?.timer);
    const timer = this.#clock.setTimeout(() => this.end(node), lasts);
    this.#cuts.set(node, { until: this.#clock.now() + lasts, timer });
  }

  /** Ends a cut. Returns false when there was none. */
  end(node: string): boolean {
    const cut = this.#cuts.get(node);
    if (cut === undefined) return false;
    this.#clock.clearTimeout(cut.timer);
    this.#cuts.delete(node);
    this.#over(node);
    return true;
  }

  /** Remaining time of a cut; null without one. */
  remainingMs(node: string): number | null {
    const cut = this.#cuts.get(node);
    return cut === undefined ? null : Math.max(0, cut.until - this.#clock.now());
  }

  has(node: string): boolean {
    return this.#cuts.has(node);
  }

  get nodes(): string[] {
    return [...this.#cuts.keys()];
  }

  stop(): void {
    for (const { timer } of this.#cuts.values()) this.#clock.clearTimeout(timer);
    this.#cuts.clear();
  }
}
