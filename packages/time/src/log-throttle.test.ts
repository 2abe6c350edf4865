import { expect, test } from '@jest/globals';
import { LogThrottle } from './log-throttle.js';
import { ManualClock } from './testing/index.js';

test('allows each key once a minute', () => {
  const clock = new ManualClock();
  const throttle = new LogThrottle(clock);
  expect(throttle.allows('a')).toBe(true);
  expect(throttle.allows('a')).toBe(false);
  expect(throttle.allows('b')).toBe(true);
  clock.advance(59_999);
  expect(throttle.allows('a')).toBe(false);
  clock.advance(1);
  expect(throttle.allows('a')).toBe(true);
  expect(throttle.allows('a')).toBe(false);
});

test('allows a bounded number of keys per minute, however many there are', () => {
  const clock = new ManualClock();
  const throttle = new LogThrottle(clock);
  const allowed = (round: number): number => {
    let count = 0;
    for (let i = 0; i < 5_000; i += 1) if (throttle.allows(`key ${round}/${i}`)) count += 1;
    return count;
  };
  expect(allowed(0)).toBe(1_000);
  clock.advance(30_000);
  expect(allowed(1)).toBe(0);
  clock.advance(30_000);
  expect(allowed(2)).toBe(1_000);
});
