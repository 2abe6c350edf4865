import { expect, test } from '@jest/globals';
import { reconnectDelayMs } from './backoff.js';

const longest = (attempts: number[], outageMs: number, options = {}): (number | undefined)[] =>
  attempts.map((attempt) => reconnectDelayMs(attempt, { ...options, outageMs }, () => 1));

test('doubles the pause up to 2 s in a young outage and up to 10 s later, endlessly by default', () => {
  expect(longest([0, 1, 2, 3, 500], 29_999)).toEqual([500, 1_000, 2_000, 2_000, 2_000]);
  expect(longest([0, 3, 4, 5, 500], 30_000)).toEqual([500, 4_000, 8_000, 10_000, 10_000]);
});

test('draws the pause from its whole range', () => {
  expect(reconnectDelayMs(1, {}, () => 0)).toBe(0);
  expect(reconnectDelayMs(1, {}, () => 0.5)).toBe(500);
});

test('spreads the return of a thousand clients of a node that was down for 5 s evenly, after 0.7 s on average', () => {
  // A generator with a fixed seed (Numerical Recipes), so that every run gives the same numbers.
  let state = 1;
  const random = (): number => (state = (1_664_525 * state + 1_013_904_223) % 2 ** 32) / 2 ** 32;
  const clients = 1_000;
  const downMs = 5_000;
  const waits = Array.from({ length: clients }, () => {
    let atMs = 0;
    for (let attempt = 0; atMs < downMs; attempt += 1)
      atMs += reconnectDelayMs(attempt, { outageMs: atMs }, random) ?? 0;
    return atMs - downMs;
  });
  expect(Math.max(...waits)).toBeLessThan(2_000);
  expect(waits.reduce((sum, ms) => sum + ms, 0) / clients).toBeCloseTo(667, -2);
  const busiest = Math.max(
    ...Array.from({ length: 20 }, (_, n) => waits.filter((ms) => Math.floor(ms / 100) === n).length),
  );
  expect(busiest).toBeLessThan(150);
});

test('shortens the pause before the first attempt if the server lets the client wait', () => {
  const expected = (attempt: number): number | undefined => longest([attempt], 0, { isExpected: true })[0];
  expect(expected(0)).toBe(100);
  expect(expected(1)).toBe(1_000);
});

test('lets an application limit the attempts and the pauses', () => {
  const options = { firstDelayMs: 10, maxDelayMs: 15, maxAttempts: 2 };
  expect(longest([0, 1, 2], 0, options)).toEqual([10, 15, undefined]);
  expect(longest([1], 60_000, options)).toEqual([15]);
});
