import { expect, test } from '@jest/globals';
import { warmUpRooms } from './warm-up.js';

test('gives every client of the warm-up an answer', async () => {
  expect(await warmUpRooms()).toBe(64);
});
