import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { matcher } from './pattern.js';

describe('patterns', () => {
  test.each([
    ['rooms/kitchen', '/rooms/kitchen', true],
    ['/rooms/kitchen', 'rooms/kitchen', true],
    ['rooms/kitchen', '/rooms/kitchen/peers/ann', false],
    ['rooms/kitchen*', '/rooms/kitchen/peers/ann', true],
    ['*/peers/*', '/rooms/kitchen/peers/ann', true],
    ['*ann', '/rooms/kitchen/peers/joann', true],
    ['*ann', '/rooms/kitchen/peers/anna', false],
    ['*', '', true],
    ['', 'x', false],
    ['a.c', 'abc', false],
    ['*a*b*', 'xxaxxbxx', true],
    ['*a*b*', 'xxbxxaxx', false],
  ])('matches the pattern %s against %s: %s', (pattern, path, fits) => {
    expect(matcher(pattern)(path)).toBe(fits);
  });

  test('matches like the equivalent regular expression', () => {
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 12 });
    const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
    fc.assert(
      fc.property(patterns, texts, (pattern, text) => {
        const plain = text.startsWith('/') ? text.slice(1) : text;
        expect(matcher(pattern)(text)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(plain));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('matches a pattern with many stars quickly', () => {
    const long = 'a'.repeat(1_000);
    expect(matcher(`${'*a'.repeat(500)}*b`)(long)).toBe(false);
  });
});
