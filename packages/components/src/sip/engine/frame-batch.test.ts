import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { type BatchFrame, FrameBatch, framesOf } from './frame-batch.js';

const frame = fc.record({
  call: fc.nat(0xffff_ffff),
  track: fc.nat(0xffff_ffff),
  timestamp: fc.maxSafeNat(),
  data: fc.uint8Array({ maxLength: 1300 }),
});

describe('a batch of packets', () => {
  test('is unpacked as it was packed, again and again', () => {
    const batch = new FrameBatch();
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), (frames) => {
        for (const one of frames) batch.add(one);
        // Compare as hex, because Jest compares byte arrays element by element, which takes most of the time.
        const hex = (list: Iterable<BatchFrame>) =>
          [...list].map((one) => ({ ...one, data: Buffer.from(one.data).toString('hex') }));
        expect(hex(framesOf(Uint8Array.from(batch.take())))).toEqual(hex(frames));
        expect(batch.empty).toBe(true);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('ends at bytes that make no sense, at no cost', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const read = [...framesOf(bytes)];
        return read.reduce((sum, { data }) => sum + data.length + 18, 0) <= bytes.length;
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('holds the largest packet an encoder makes', () => {
    const batch = new FrameBatch();
    batch.add({ call: 1, track: 1, timestamp: 0, data: new Uint8Array(70_000) });
    expect(batch.empty).toBe(true);
  });
});
