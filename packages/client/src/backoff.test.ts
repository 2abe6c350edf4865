import { expect, test } from '@jest/globals';
import { reconnectDelayMs } from './backoff.js';

test('the pause doubles up to its limit and never ends by default', () => {
  const longest = [0, 1, 2, 3, 4, 5, 500].map((attempt) => reconnectDelayMs(attempt, {}, () => 1));
  expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
});

test('it is drawn from the upper half of its range', () => {
  expect(reconnectDelayMs(1, {}, () => 0)).toBe(500);
  expect(reconnectDelayMs(1, {}, () => 0.5)).toBe(750);
});

test('an application can limit the attempts and the pauses', () => {
  const options = { firstDelayMs: 10, maxDelayMs: 15, maxAttempts: 2 };
  expect([0, 1, 2].map((attempt) => reconnectDelayMs(attempt, options, () => 1))).toEqual([10, 15, undefined]);
});
