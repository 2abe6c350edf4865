// Time for which a node is not to blame on a machine that runs other programs as well.
import { readFileSync } from 'node:fs';

const TICK_MS = 5;

/** Returns how long the main thread of a process has waited for a processor, in ms. */
function waitedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

/** Measures pauses of the test's own event loop, and the node's waits for a processor. */
export class Blameless {
  readonly #pid: number;
  readonly #timer: NodeJS.Timeout;
  #stalledMs = 0;
  #tickedAt = performance.now();

  /** `pid`: the node. */
  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** The sum of both since any moment, in ms. */
  get ms(): number {
    this.#tick();

    return this.#stalledMs + waitedMs(this.#pid);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    this.#stalledMs += Math.max(0, now - this.#tickedAt - TICK_MS);
    this.#tickedAt = now;
  }
}
