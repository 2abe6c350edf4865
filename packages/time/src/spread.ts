import type { Clock } from './clock.js';
import { sleep } from './waiting.js';

/** Pause between two, and the longest time for all. */
const PAUSE_MS = 10;
const WITHIN_MS = 2_000;

/**
 * Does something to one after the other, 10 ms apart, or closer if it took longer than 2 s: clients that are sent to
 * other nodes at once would all join there at once.
 */
export async function spread<T>(all: readonly T[], act: (each: T) => void, clock: Clock): Promise<void> {
  const pauseMs = Math.min(PAUSE_MS, WITHIN_MS / all.length);
  const startMs = clock.now();
  for (const [at, each] of all.entries()) {
    const aheadMs = startMs + at * pauseMs - clock.now();
    if (aheadMs > 0) await sleep(aheadMs, { clock });
    act(each);
  }
}
