import { expect, test } from '@jest/globals';
import { AwakeClock } from './awake-clock.js';
import { ManualClock } from './testing/index.js';

test('agrees with its base while the process runs', () => {
  const base = new ManualClock();
  const clock = new AwakeClock(base);
  const before = clock.now();
  base.advance(3_600_000);
  expect(clock.now() - before).toBe(3_600_000);
});

test('counts a pause as the second that would have passed until the next check', () => {
  const base = new ManualClock();
  const clock = new AwakeClock(base);
  const before = clock.now();
  base.advance(10_500);
  base.leap(40_000);
  expect(clock.now() - before).toBe(11_000);
  base.advance(5_000);
  expect(clock.now() - before).toBe(16_000);
});

test('holds a timer that a pause would end early for the rest of its time', () => {
  const base = new ManualClock();
  const clock = new AwakeClock(base);
  const runs: number[] = [];
  clock.setTimeout(() => runs.push(base.now()), 30_000);
  base.advance(10_000);
  base.leap(40_000);
  expect(runs).toEqual([]);
  base.advance(18_999);
  expect(runs).toEqual([]);
  base.advance(1_000);
  expect(runs).toHaveLength(1);
});

test('clears a timer before and after a pause', () => {
  const base = new ManualClock();
  const clock = new AwakeClock(base);
  clock.now();
  const looks = base.pending;
  const before = clock.setTimeout(() => expect(true).toBe(false), 5_000);
  clock.clearTimeout(before);
  clock.clearTimeout(undefined);
  const after = clock.setTimeout(() => expect(true).toBe(false), 5_000);
  base.leap(40_000);
  clock.clearTimeout(after);
  base.advance(60_000);
  expect(base.pending).toBe(looks);
});
