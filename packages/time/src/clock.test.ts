import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { systemClock } from './clock.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test.each([1, 24, 30, 365])('runs a timer of %d days once, on time', (days) => {
  const run = jest.fn();
  systemClock.setTimeout(run, days * DAY_MS);
  jest.advanceTimersByTime(days * DAY_MS - 1);
  expect(run).not.toHaveBeenCalled();
  jest.advanceTimersByTime(1);
  expect(run).toHaveBeenCalledTimes(1);
  jest.advanceTimersByTime(days * DAY_MS);
  expect(run).toHaveBeenCalledTimes(1);
});

test.each([1, 40])('clears a timer of %d days at any time', (days) => {
  const run = jest.fn();
  for (const after of [0, days - 1]) {
    const timer = systemClock.setTimeout(run, days * DAY_MS);
    jest.advanceTimersByTime(after * DAY_MS);
    systemClock.clearTimeout(timer);
  }
  jest.advanceTimersByTime(2 * days * DAY_MS);
  expect(run).not.toHaveBeenCalled();
  expect(jest.getTimerCount()).toBe(0);
});
