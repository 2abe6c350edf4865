import { expect, test } from '@jest/globals';
import { Backoff } from './backoff.js';

const delays = (backoff: Backoff, causes: string): number[] => [...causes].map((cause) => backoff.failed(cause));

test('doubles the delay for a repeated cause up to the maximum, and starts over for a new cause', () => {
  const backoff = new Backoff({ firstMs: 1_000, mostMs: 10_000, random: () => 0 });
  expect(delays(backoff, 'aaaaaa')).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
  expect(delays(backoff, 'baa')).toEqual([1_000, 1_000, 2_000]);
  backoff.succeeded();
  expect(delays(backoff, 'a')).toEqual([1_000]);
});

test('delays for at least the requested time, and up to a tenth longer at random', () => {
  const backoff = new Backoff({ firstMs: 1_000, mostMs: 10_000, random: () => 0.5 });
  expect(backoff.failed('a', 5_000)).toBe(5_250);
  expect(backoff.failed('a')).toBe(2_100);
});
