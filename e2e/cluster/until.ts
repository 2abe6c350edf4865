// Waits for an action of another process. The time limit ends hung tests and measures nothing.
import { setTimeout as delay } from 'node:timers/promises';

/** Polls until the answer is truthy; an error counts as "not yet". */
export async function until<T>(
  what: string,
  probe: () => Promise<T> | T,
  options: { limitMs?: number; detail?: () => string } = {},
): Promise<Exclude<T, false | null | undefined>> {
  const { limitMs = 60_000, detail = () => '' } = options;
  const deadline = Date.now() + limitMs;
  let last: unknown;
  while (Date.now() < deadline) {
    try {
      const answer = await probe();
      if (answer) return answer as Exclude<T, false | null | undefined>;
      last = answer;
    } catch (error) {
      last = error;
    }
    await delay(100);
  }
  throw new Error(`${what}: not within ${limitMs} ms; at last ${String(last)}\n${detail()}`);
}
