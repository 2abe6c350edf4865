import { expect, test } from '@jest/globals';
import { startShare } from './start-share.js';

const waiting = { isWaiting: true, expectedBps: 0 };
const flowing = (expectedBps: number): { isWaiting: boolean; expectedBps: number } => ({
  isWaiting: false,
  expectedBps,
});

test('is equal among the slots that wait for their first media', () => {
  expect(startShare(240_000, [waiting, waiting, waiting])).toBe(80_000);
});

test('leaves what others are sent', () => {
  expect(startShare(240_000, [waiting, flowing(140_000)])).toBe(100_000);
  expect(startShare(240_000, [waiting, flowing(340_000)])).toBe(0);
});

test('is all that is left for a slot that replaces the only one', () => {
  expect(startShare(240_000, [flowing(40_000)])).toBe(200_000);
});
