import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ComponentError } from '../errors.js';
import { idr, picture, PPS, SPS } from '../testing/room.js';
import { fragment, lengthPrefixed } from './fragment.js';
import { FragmentReader, type Mp4Picture } from './fragment-reader.js';
import { initSegment } from './init-segment.js';

const init = initSegment([{ kind: 'video', width: 640, height: 360, timescale: 90_000, sps: SPS, pps: PPS }]);

function read(bytes: Buffer, piece = bytes.length): { reader: FragmentReader; pictures: Mp4Picture[] } {
  const reader = new FragmentReader();
  const pictures: Mp4Picture[] = [];
  for (let at = 0; at < bytes.length; at += piece) pictures.push(...reader.push(bytes.subarray(at, at + piece)));

  return { reader, pictures };
}

const two = fragment(1, [
  {
    track: 1,
    decodeTime: 0,
    samples: [
      { data: lengthPrefixed([SPS, PPS, idr()]), duration: 3_000, key: true },
      { data: lengthPrefixed([picture()]), duration: 4_500, key: false },
    ],
  },
]);
const third = fragment(2, [
  { track: 1, decodeTime: 7_500, samples: [{ data: lengthPrefixed([picture(9)]), duration: 2_000, key: false }] },
]);
const file = Buffer.concat([init, two, third]);

describe('a recorded MP4 file', () => {
  test('reads a file as it was written, however it is split', () => {
    for (const piece of [1, 7, 100, file.length]) {
      const { reader, pictures } = read(file, piece);
      expect(reader.header).toEqual({ width: 640, height: 360, timescale: 90_000, sps: SPS, pps: PPS });
      expect(pictures).toEqual([
        { time: 0, duration: 3_000, key: true, nals: [SPS, PPS, idr()] },
        { time: 3_000, duration: 4_500, key: false, nals: [picture()] },
        { time: 7_500, duration: 2_000, key: false, nals: [picture(9)] },
      ]);
      expect(reader.end).toBe(9_500);
    }
  });

  test('reads a file up to the last complete fragment', () => {
    for (let cut = 1; cut < third.length; cut++) {
      const { reader, pictures } = read(file.subarray(0, file.length - cut));
      expect(pictures).toHaveLength(2);
      expect(reader.end).toBe(7_500);
      expect(reader.wholeBytes).toBe(file.length - third.length);
    }
  });

  test('throws only the documented error for garbage', () => {
    let runs = 0;
    const mutated = fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(file);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
    const bytes = fc.oneof(
      { weight: 4, arbitrary: mutated },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array)) },
    );
    let failures = 0;
    fc.assert(
      fc.property(bytes, fc.integer({ min: 50, max: 2_000 }), (given, piece) => {
        runs += 1;
        try {
          for (const { nals } of read(given, piece).pictures) expect(Array.isArray(nals)).toBe(true);
        } catch (error) {
          failures++;
          expect(error).toBeInstanceOf(ComponentError);
          expect(error).toMatchObject({ code: 'BAD_MP4' });
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect(failures).toBeGreaterThan(runs / 100);
  });
});
