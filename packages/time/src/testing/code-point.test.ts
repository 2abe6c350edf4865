import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { codePoint } from './code-point.js';

const strings = fc.string({ unit: codePoint(fc) });

test('generates well-formed strings from all planes, including those known to be dangerous', () => {
  const sample = fc.sample(strings, { numRuns: 5_000, seed: 1 });
  const values = sample.flatMap((text) => Array.from(text, (one) => one.codePointAt(0) as number));

  expect(values.filter((value) => value >= 0xd800 && value < 0xe000)).toEqual([]);
  expect(new Set(values.map((value) => value >> 16)).size).toBe(17);
  expect(sample).toContain('__proto__');
});

test('shrinks to the shortest counterexample', () => {
  const { counterexample } = fc.check(
    fc.property(strings, (text) => !text.includes('\u{1f600}') && text.length < 5),
    { seed: 1 },
  );

  expect(counterexample?.[0]).toHaveLength(5);
});
