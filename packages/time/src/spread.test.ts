import { expect, test } from '@jest/globals';
import { ManualClock } from './testing/index.js';
import { spread } from './spread.js';

test.each([
  [1, 0],
  [100, 990],
  [5_000, 2_000],
])('reaches %i clients one after the other, the last after %i ms', async (count, lastMs) => {
  const clock = new ManualClock();
  const startMs = clock.now();
  const reachedMs: number[] = [];
  let done = false;
  const all = Array.from({ length: count }, (_, i) => i);
  void spread(all, () => reachedMs.push(clock.now() - startMs), clock).then(() => (done = true));
  for (let ms = 0; ms < 3_000 && !done; ms++) {
    clock.advance(1);
    await new Promise(setImmediate);
  }
  expect(reachedMs).toHaveLength(count);
  expect(reachedMs[0]).toBe(0);
  expect(Math.abs((reachedMs.at(-1) ?? 0) - lastMs)).toBeLessThanOrEqual(1);
});
