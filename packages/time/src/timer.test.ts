import { expect, test } from '@jest/globals';
import { ManualClock } from './testing/index.js';
import { Timer } from './timer.js';

test('runs once, and cancels the earlier run when started again', () => {
  const clock = new ManualClock();
  const timer = new Timer(clock);
  const runs: string[] = [];
  timer.start(10, () => runs.push('first'));
  clock.advance(9);
  timer.start(10, () => runs.push('second'));
  clock.advance(9);
  expect(timer.running).toBe(true);
  clock.advance(1);
  expect(timer.running).toBe(false);
  clock.advance(100);
  expect(runs).toEqual(['second']);
});

test('repeats until it is stopped, even from its own callback', () => {
  const clock = new ManualClock();
  const timer = new Timer(clock);
  const at: number[] = [];
  timer.repeat(10, () => {
    at.push(clock.now());
    if (at.length === 3) timer.stop();
  });
  clock.advance(100);
  expect(at).toEqual([10, 20, 30]);
  expect(clock.pending).toBe(0);
});
