import { expect, test } from '@jest/globals';
import { warmUpRooms } from './warm-up.js';

test('every client of the warm-up gets an answer', async () => {
  expect(await warmUpRooms()).toBe(64);
});
