import { expect, test } from '@jest/globals';
import { warmUp } from './warm-up.js';

test('runs every packet of the warm-up through the path to every subscriber', () => {
  expect(warmUp()).toBe(1200 * 12);
});
