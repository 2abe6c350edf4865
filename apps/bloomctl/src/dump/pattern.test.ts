import { expect, test } from '@jest/globals';
import { matches } from './pattern.js';

test.each([
  ['rooms/kitchen', '/rooms/kitchen', true],
  ['/rooms/kitchen', 'rooms/kitchen', true],
  ['rooms/*', '/rooms/kitchen', true],
  ['rooms/*', '/rooms/kitchen/peers/ann', false],
  ['rooms/**', '/rooms/kitchen/peers/ann', true],
  ['rooms/kitchen*', '/rooms/kitchen-2', true],
  ['**/peers/*', '/rooms/kitchen/peers/ann', true],
  ['a.c', '/abc', false],
  ['a(b', '/a(b', true],
])('%s and %s: %s', (pattern, path, fits) => expect(matches(pattern, path)).toBe(fits));
