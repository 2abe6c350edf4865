import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { jsonEqual } from './json-equal.js';

describe('jsonEqual', () => {
  test('compares values like their texts, whatever the order of keys', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
        expect(jsonEqual(a, JSON.parse(JSON.stringify(a)))).toBe(true);
        if (JSON.stringify(a) === JSON.stringify(b)) expect(jsonEqual(a, b)).toBe(true);
        else if (jsonEqual(a, b)) expect(copy(a)).toEqual(copy(b));
      }),
      { numRuns: fuzzRuns(1000) },
    );
  });

  test('treats objects without a prototype like any others', () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(jsonEqual(bare, { a: 1 })).toBe(true);
    expect(jsonEqual({ a: 1 }, bare)).toBe(true);
    expect(jsonEqual(bare, { a: 2 })).toBe(false);
  });

  test.each([
    [[1], { 0: 1 }],
    [null, {}],
    [{ a: undefined }, { b: undefined }],
    [[1, 2], [1]],
    [1, '1'],
  ])('distinguishes %j from %j', (a, b) => {
    expect(jsonEqual(a, b)).toBe(false);
    expect(jsonEqual(b, a)).toBe(false);
  });
});

function copy(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
