import { expect, test } from '@jest/globals';
import { randomBytes } from './random-bytes.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

test('gives every caller bytes of its own, which later calls do not change', () => {
  const given = Array.from({ length: 2_000 }, () => randomBytes(16));
  const texts = given.map(hex);
  expect(new Set(texts).size).toBe(2_000);
  randomBytes(4_096);
  expect(given.map(hex)).toEqual(texts);
});

test('never returns bytes that have been given out or erased', () => {
  for (const n of [7, 4_000, 96, 1, 4_096, 8]) {
    const bytes = randomBytes(n);
    expect(bytes.length).toBe(n);
    // Sixteen zeros in a row come by chance once in 2^128 draws.
    expect(hex(bytes)).not.toContain('00'.repeat(16));
  }
});
