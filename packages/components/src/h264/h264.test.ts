import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { nalType, splitAnnexB, toAnnexB } from '@bloom/rtp';
import fc from 'fast-check';
import { ComponentError } from '../errors.js';
import { bidirectional, idr, picture, PPS, SPS } from '../testing/room.js';
import { AccessUnits, type AccessUnit } from './access-units.js';
import { pictureSize } from './parameter-sets.js';

function read(stream: Buffer, piece = stream.length): AccessUnit[] {
  const reader = new AccessUnits();
  const units: AccessUnit[] = [];
  for (let at = 0; at < stream.length; at += piece) units.push(...reader.push(stream.subarray(at, at + piece)));
  return [...units, ...reader.end()];
}

const types = (units: AccessUnit[]): number[][] => units.map(({ nals }) => nals.map(nalType));

/** A slice that continues a picture: `first_mb_in_slice` is not 0. */
const laterSlice = (): Buffer => Buffer.from([0x61, 0b01011000, 1, 2, 3]);

describe('a raw H.264 stream', () => {
  test('splits into the same pictures however it is read', () => {
    const stream = toAnnexB([SPS, PPS, idr(300), laterSlice(), picture(), laterSlice(), picture(), idr(), picture()]);
    for (const piece of [1, 2, 3, 7, 64, stream.length]) {
      const units = read(stream, piece);
      expect(types(units)).toEqual([[7, 8, 5, 1], [1, 1], [1], [7, 8, 5], [1]]);
      expect(units.map(({ key }) => key)).toEqual([true, false, false, true, false]);
      expect(units[0]?.nals[2]).toEqual(idr(300));
    }
  });

  test('is split at delimiters, which are omitted', () => {
    const aud = Buffer.from([9, 0xf0]);
    const stream = toAnnexB([aud, SPS, PPS, idr(), aud, picture(), aud, picture()]);
    expect(types(read(stream))).toEqual([[7, 8, 5], [1], [1]]);
  });

  test('omits the NAL units that mean something else in RTP', () => {
    const unspecified = [0, 24, 28, 31].map((type) => Buffer.from([0x60 | type, 1, 2, 3]));
    expect(types(read(toAnnexB([SPS, PPS, idr(), ...unspecified, picture()])))).toEqual([[7, 8, 5], [1]]);
  });

  test('passes on whole access units immediately, with the parameter sets before each key picture', () => {
    const reader = new AccessUnits();
    expect(reader.pushWhole(toAnnexB([SPS, PPS]))).toEqual([]);
    const whole = [toAnnexB([picture()]), toAnnexB([idr(300), laterSlice()]), toAnnexB([picture()]), toAnnexB([idr()])];
    expect(whole.map((unit) => types(reader.pushWhole(unit)))).toEqual([[], [[7, 8, 5, 1]], [[1]], [[7, 8, 5]]]);
    expect(types(reader.pushWhole(toAnnexB([picture(), picture()])))).toEqual([[1], [1]]);
    expect(() => reader.pushWhole(Buffer.alloc(8 * 1024 * 1024 + 1))).toThrow('a picture has more than');
  });

  test('starts with the first key picture that can be decoded', () => {
    const reader = new AccessUnits();
    reader.push(toAnnexB([picture(), idr(), picture(), SPS, PPS, idr(), picture()]));
    reader.end();
    expect(reader.skipped).toBe(3);
  });

  test('rejects B frames', () => {
    expect(() => read(toAnnexB([SPS, PPS, idr(), bidirectional(), picture()]))).toThrow(
      expect.objectContaining({ code: 'BAD_H264' }),
    );
  });

  test('throws only the documented error for garbage', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(SPS, PPS, idr(), picture(), laterSlice()).map((nal) => toAnnexB([nal])),
        fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
        fc.constant(Buffer.from([0, 0, 1])),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 100 }), (parts, piece) => {
        try {
          for (const { nals, key } of read(Buffer.concat(parts), piece)) {
            expect(nals.some((nal) => nalType(nal) >= 1 && nalType(nal) <= 5)).toBe(true);
            if (key) expect(nals.slice(0, 2).map(nalType)).toContain(7);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(ComponentError);
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

describe('a sequence parameter set', () => {
  test('yields the size of the picture', () => {
    expect(pictureSize(SPS)).toEqual({ width: 640, height: 360 });
    // High profile cropped from 1088 rows; and full chroma cropped on both sides of odd halves.
    const high = Buffer.from('67640028acd940780227e5c044000003000400000300f03c60c658', 'hex');
    expect(pictureSize(high)).toEqual({ width: 1920, height: 1080 });
    const chroma = Buffer.from('67f4000d919b282a33c7c5e022000003000200000300781e28532c', 'hex');
    expect(pictureSize(chroma)).toEqual({ width: 322, height: 182 });
  });

  test('yields no size or a plausible one for garbage', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const size = pictureSize(Buffer.from(bytes));
        if (size !== undefined) expect(size.width * size.height).toBeLessThanOrEqual(16_384 ** 2);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

test('NAL units split from a stream keep their bytes', () => {
  expect(splitAnnexB(toAnnexB([SPS, PPS, idr()]))).toEqual([SPS, PPS, idr()]);
});
