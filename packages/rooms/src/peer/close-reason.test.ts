import { expect, test } from '@jest/globals';
import { closeReason, INTERNAL_ERROR } from './close-reason.js';

test('cuts a close reason to 123 bytes, never within a character', () => {
  expect(closeReason('short')).toBe('short');
  expect(closeReason('')).toBe(INTERNAL_ERROR);
  expect(closeReason('x'.repeat(200))).toBe('x'.repeat(123));
  expect(closeReason('ü'.repeat(62))).toBe('ü'.repeat(61));
  expect(closeReason(`x${'😀'.repeat(40)}`)).toBe(`x${'😀'.repeat(30)}`);
});
