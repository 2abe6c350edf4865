import { expect, test } from '@jest/globals';
import { LogThrottle } from './log-throttle.js';
import { ManualClock } from './testing/index.js';

test('each key is allowed once a minute', () => {
  const clock = new ManualClock();
  const throttle = new LogThrottle(clock);
  expect([throttle.allows('a'), throttle.allows('a'), throttle.allows('b')]).toEqual([true, false, true]);
  clock.advance(59_999);
  expect(throttle.allows('a')).toBe(false);
  clock.advance(1);
  expect([throttle.allows('a'), throttle.allows('a')]).toEqual([true, false]);
});

test('remembers a bounded number of keys: those it has forgotten are allowed again', () => {
  const throttle = new LogThrottle(new ManualClock());
  for (let i = 0; i < 1_000; i += 1) throttle.allows(`key ${i}`);
  expect(throttle.allows('key 0')).toBe(false);
  throttle.allows('one more');
  expect(throttle.allows('key 0')).toBe(true);
});
