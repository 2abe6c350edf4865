import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { SequenceUnwrapper, sequenceDelta, TimestampUnwrapper, timestampDelta } from './unwrap.js';

describe('unwrapping', () => {
  test('keeps every distance of sequence numbers below half a circle', () => {
    fc.assert(
      fc.property(
        fc.nat(65_535),
        fc.array(fc.integer({ min: -1000, max: 32_000 }), { maxLength: 50 }),
        (first, steps) => {
          const unwrapper = new SequenceUnwrapper();
          const offset = unwrapper.unwrap(first) - first;
          let newest = first;
          const [seen, right]: [number[], number[]] = [[], []];
          for (const step of steps) {
            const next = newest + step;
            if (next < first - 1000) continue;
            const wire = (next + 65_536) % 65_536;
            seen.push(unwrapper.peek(wire), unwrapper.unwrap(wire), unwrapper.newest);
            newest = Math.max(newest, next);
            right.push(next + offset, next + offset, newest + offset);
          }
          expect(seen).toEqual(right);
        },
      ),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('keeps every distance of timestamps below half a circle', () => {
    const unwrapper = new TimestampUnwrapper();
    const first = unwrapper.unwrap(4_294_967_290);
    expect(unwrapper.unwrap(10) - first).toBe(16);
    expect(unwrapper.unwrap(4_294_967_280) - first).toBe(-10);
  });

  test('never returns a negative number', () => {
    const unwrapper = new SequenceUnwrapper();
    unwrapper.unwrap(0);
    for (let i = 0; i < 10; i += 1) expect(unwrapper.peek((65_536 - i * 3000) % 65_536)).toBeGreaterThanOrEqual(0);
  });

  test('measures signed distances on the circles', () => {
    expect(sequenceDelta(65_535, 0)).toBe(1);
    expect(sequenceDelta(0, 65_535)).toBe(-1);
    expect(sequenceDelta(0, 32_768)).toBe(-32_768);
    expect(timestampDelta(4_294_967_295, 1)).toBe(2);
    expect(timestampDelta(1, 4_294_967_295)).toBe(-2);
  });
});
