import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { guessIndex, ReplayWindow } from './replay-window.js';

describe('the replay window', () => {
  test('accepts each index once, in any order within 128', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 200 }), (indices) => {
        const window = new ReplayWindow();
        const seen = new Set<number>();
        let highest = -1;
        for (const index of indices) {
          const expected = !seen.has(index) && highest - index < 128;
          if (window.isFresh(index) !== expected) expect([index, highest]).toBe(expected ? 'fresh' : 'not fresh');
          if (!expected) continue;
          window.accept(index);
          seen.add(index);
          highest = Math.max(highest, index);
        }
      }),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('forgets the indices it skips', () => {
    const window = new ReplayWindow();
    for (let index = 0; index < 128; index += 1) window.accept(index);
    window.accept(131);
    for (const index of [128, 129, 130]) expect(window.isFresh(index)).toBe(true);
    expect(window.isFresh(131)).toBe(false);
  });

  test('works with indices beyond 32 bits', () => {
    const window = new ReplayWindow();
    const base = 2 ** 47;
    window.accept(base);
    expect(window.isFresh(base)).toBe(false);
    expect(window.isFresh(base - 1)).toBe(true);
    window.accept(base + 1000);
    expect(window.isFresh(base + 999)).toBe(true);
    expect(window.isFresh(base)).toBe(false);
  });
});

describe('guessing an index', () => {
  test('finds every index within 32,767 of the highest', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 40_000, max: 2 ** 48 - 1 }),
        fc.integer({ min: -32_767, max: 32_767 }),
        (highest, by) => {
          const index = highest + by;
          expect(guessIndex(highest, index % 65_536)).toBe(index);
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('takes the sequence number as the index of the first packet', () => {
    expect(guessIndex(-1, 0)).toBe(0);
    expect(guessIndex(-1, 65_535)).toBe(65_535);
  });

  test('returns a negative index for a packet from before the first roll-over counter', () => {
    expect(guessIndex(10, 65_530)).toBeLessThan(0);
  });
});
