import { expect, test } from '@jest/globals';
import { warmUpRooms } from './warm-up.js';

test('gives every client of the warm-up an answer', async () => {
  expect(await warmUpRooms()).toBe(64);
});

test("gives every one of LiveKit's clients an answer, too", async () => {
  expect(await warmUpRooms(await import('@bloom/livekit'))).toBe(96);
});
