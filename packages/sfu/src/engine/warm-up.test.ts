import { setEnvironmentData } from 'node:worker_threads';
import { expect, test } from '@jest/globals';
import { startsCold, warmUp } from './warm-up.js';

test('runs every packet of the warm-up through the path to every subscriber', () => {
  expect(warmUp()).toBe(1200 * 12);
});

test('leaves the warm-up out only where a test has asked for that', () => {
  expect(startsCold()).toBe(false);
  setEnvironmentData('bloom.cold', true);
  expect(startsCold()).toBe(true);
  setEnvironmentData('bloom.cold', undefined);
  expect(startsCold()).toBe(false);
});
