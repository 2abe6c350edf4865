import { setTimeout as pause } from 'node:timers/promises';

interface FloodOptions {
  lastsMs?: number;
  /** Steps between two pauses. */
  perGroup?: number;
  pauseMs?: number;
}

/** Repeats a step in small groups until the time is up. The step receives the number of its group. */
export async function flood(
  step: (group: number) => unknown,
  { lastsMs = 3_000, perGroup = 1, pauseMs = 5 }: FloodOptions = {},
): Promise<void> {
  const until = performance.now() + lastsMs;
  for (let group = 0; performance.now() < until; group += 1) {
    for (let at = 0; at < perGroup; at += 1) await step(group);
    await pause(pauseMs);
  }
}
