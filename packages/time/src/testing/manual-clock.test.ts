import { expect, test } from '@jest/globals';
import { ManualClock } from './manual-clock.js';

test('runs timers in due order, including those set by other timers', () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  clock.setTimeout(() => seen.push(`late at ${clock.now()}`), 20);
  clock.setTimeout(() => {
    seen.push(`early at ${clock.now()}`);
    clock.setTimeout(() => seen.push(`nested at ${clock.now()}`), 10);
  }, 10);
  const cleared = clock.setTimeout(() => seen.push('cleared'), 15);
  clock.clearTimeout(cleared);
  clock.advance(20);
  expect(seen).toEqual(['early at 10', 'late at 20', 'nested at 20']);
  expect(clock.now()).toBe(20);
});

test('moves the wall clock along, and can move it alone', () => {
  const clock = new ManualClock(1_000);
  clock.advance(5);
  clock.jump(-500);
  expect(clock.now()).toBe(5);
  expect(clock.wall()).toBe(505);
});

test('settles after each timer when it advances asynchronously', async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  for (const ms of [1, 2]) clock.setTimeout(() => void Promise.resolve().then(() => seen.push(`work of ${ms}`)), ms);
  await clock.advanceAsync(5, async () => void seen.push(`settled at ${clock.now()}`));
  expect(seen).toEqual(['settled at 1', 'work of 1', 'settled at 2', 'work of 2', 'settled at 5']);
});
