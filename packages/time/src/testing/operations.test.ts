import { expect, test } from '@jest/globals';
import { ManualClock } from './manual-clock.js';
import { operations } from './operations.js';

test('effort is counted, the same each time, and grows with what is done', () => {
  const clock = new ManualClock();
  const effort = (times: number): number =>
    operations('manual-clock.ts', () => {
      for (let i = 0; i < times; i += 1) clock.now();
    });
  expect(effort(100)).toBe(effort(100));
  expect(effort(10_000) - effort(100)).toBeGreaterThanOrEqual(9_900);
});

test('a file that did not run is a mistake', () => {
  expect(() => operations('no-such-file.ts', () => undefined)).toThrow('nothing of no-such-file.ts ran');
});
