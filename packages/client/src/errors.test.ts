import { expect, test } from '@jest/globals';
import { errorOfClose } from './errors.js';

test.each([
  [1000, 'invalid token', 'REJECTED'],
  [1000, 'expired token', 'REJECTED'],
  [1000, 'room not found', 'REJECTED'],
  [1000, 'peer already connected', 'ALREADY_CONNECTED'],
  [1000, 'Peer removed', 'REMOVED'],
  [1000, 'Please be kind', 'REMOVED'],
  [1000, 'Room stopped', 'ROOM_ENDED'],
  [1011, 'Invalid SDP offer', 'FAILED'],
])('ends the call on close code %d with "%s" as %s', (code, reason, expected) => {
  expect(errorOfClose(code, reason, false)).toMatchObject({ code: expected, message: expect.stringContaining(reason) });
});

test.each([
  [1006, ''],
  [1001, 'going away'],
  [1011, 'Internal server error'],
  [1012, ''],
])('makes another attempt after close code %d with "%s"', (code, reason) => {
  expect(errorOfClose(code, reason, false)).toBeUndefined();
});

test.each([
  ['room not found', 'ROOM_ENDED'],
  ['peer not found', 'REMOVED'],
  ['expired token', 'REJECTED'],
])('takes "%s" after a lost connection as %s', (reason, expected) => {
  expect(errorOfClose(1000, reason, true)?.code).toBe(expected);
});
