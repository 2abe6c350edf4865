import { expect, test } from '@jest/globals';
import { warmUp } from './warm-up.js';

test('the warm-up runs every packet through the path to every subscriber', () => {
  expect(warmUp()).toBe(1200 * 12);
});
