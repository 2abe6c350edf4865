import { expect, test } from '@jest/globals';
import { Allowance } from './allowance.js';

const RATE = { burst: 3, perSecond: 10 };

/** Takes tokens one by one, and returns how many there were. */
function drain(allowance: Allowance, nowMs: number): number {
  let taken = 0;
  while (allowance.take(nowMs)) taken += 1;

  return taken;
}

test('gives the burst at once, whatever the origin of the clock', () => {
  for (const origin of [0, 5, 1.7e12]) expect(drain(new Allowance(RATE), origin)).toBe(3);
});

test('regains tokens at the rate, fractions included', () => {
  const allowance = new Allowance(RATE);
  drain(allowance, 1_000);
  expect(allowance.take(1_099)).toBe(false);
  expect(allowance.take(1_100)).toBe(true);
  expect(allowance.left(1_150)).toBeCloseTo(0.5);
});

test('regains no more than the burst', () => {
  const allowance = new Allowance(RATE);
  drain(allowance, 1_000);
  expect(drain(allowance, 3_600_000)).toBe(3);
});

test('takes nothing when it refuses', () => {
  const allowance = new Allowance(RATE);
  expect(allowance.take(0, 4)).toBe(false);
  expect(allowance.take(0, 3)).toBe(true);
});

test('returns how long a debt lasts', () => {
  const allowance = new Allowance(RATE);
  expect(allowance.spend(0, 3)).toBe(0);
  expect(allowance.spend(0, 2)).toBe(200);
  expect(allowance.spend(100, 1)).toBe(200);
  expect(allowance.take(399)).toBe(false);
  expect(allowance.take(400)).toBe(true);
});

test('ignores a clock that goes back', () => {
  const allowance = new Allowance(RATE);
  drain(allowance, 1_000);
  expect(allowance.left(500)).toBe(0);
});
