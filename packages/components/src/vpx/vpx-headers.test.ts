import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { vp8Delta, vp8Key, vp9Frame } from '../testing/vpx.js';
import { vp8KeySize } from './vp8-header.js';
import { readVp9Frame, splitSuperframe, vp9KeySize } from './vp9-header.js';

describe('a VP8 frame', () => {
  test('has a size if it is a key frame', () => {
    expect(vp8KeySize(vp8Key(1_280, 720))).toEqual({ width: 1_280, height: 720 });
    // The upper bits of each side are for scaling.
    expect(vp8KeySize(vp8Key(0x4000 + 640, 0xc000 + 360))).toEqual({ width: 640, height: 360 });
    expect(vp8KeySize(vp8Delta())).toBeUndefined();
  });

  test('has none if it is cut, lacks the start code, or has no pixels', () => {
    expect(vp8KeySize(vp8Key().subarray(0, 9))).toBeUndefined();
    expect(vp8KeySize(Buffer.alloc(20))).toBeUndefined();
    expect(vp8KeySize(vp8Key(0, 360))).toBeUndefined();
    expect(vp8KeySize(vp8Key(640, 0))).toBeUndefined();
  });
});

/** A superframe as section B of the specification has it, with one byte per size. */
function superframe(...frames: Buffer[]): Buffer {
  const marker = 0xc0 + frames.length - 1;

  return Buffer.concat([...frames, Buffer.of(marker, ...frames.map(({ length }) => length), marker)]);
}

describe('a VP9 frame', () => {
  const size = [1_280, 720] as const;
  const parsed = { width: 1_280, height: 720 };

  test('has a size if it is a key frame, whatever its profile', () => {
    for (const profile of [0, 1, 2, 3]) {
      expect(readVp9Frame(vp9Frame({ profile, key: true, size }))).toEqual({ profile, key: true, size: parsed });
    }
  });

  test('may have a size of its own without being a key frame', () => {
    expect(readVp9Frame(vp9Frame({ size }))).toEqual({ profile: 0, key: false, size: parsed });
    expect(readVp9Frame(vp9Frame({ shown: false, size }))).toEqual({ profile: 0, key: false, size: parsed });
    const intra = vp9Frame({ shown: false, intraOnly: true, size });
    expect(readVp9Frame(intra)).toEqual({ profile: 0, key: false, size: parsed });
    expect(readVp9Frame(vp9Frame({}))).toEqual({ profile: 0, key: false });
  });

  test('is invalid if it is cut or not VP9', () => {
    expect(readVp9Frame(vp9Frame({ key: true, size }).subarray(0, 7))).toBeUndefined();
    expect(readVp9Frame(Buffer.alloc(20))).toBeUndefined();
    expect(readVp9Frame(Buffer.alloc(0))).toBeUndefined();
    const unsynchronised = vp9Frame({ key: true, size });
    unsynchronised[2]! ^= 1;
    expect(readVp9Frame(unsynchronised)).toBeUndefined();
  });

  test('is one of several in a picture with layers, whose largest gives the size', () => {
    const layers = [vp9Frame({ key: true, size: [320, 180] }), vp9Frame({ size: [640, 360] })];
    expect(splitSuperframe(superframe(...layers))).toEqual(layers);
    expect(vp9KeySize(superframe(...layers))).toEqual({ width: 640, height: 360 });
    expect(vp9KeySize(superframe(layers[0]!, vp9Frame({})))).toEqual({ width: 320, height: 180 });
    expect(vp9KeySize(layers[1]!)).toBeUndefined();
  });

  test('is the whole picture if the index does not fit', () => {
    const picture = superframe(vp9Frame({}), vp9Frame({}));
    picture[picture.length - 2] = 0xff;
    expect(splitSuperframe(picture)).toEqual([picture]);
    expect(splitSuperframe(Buffer.of(0xc7))).toEqual([Buffer.of(0xc7)]);
    expect(splitSuperframe(Buffer.alloc(0))).toEqual([Buffer.alloc(0)]);
  });

  test('never throws on garbage', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(31), (array, last) => {
        const bytes = Buffer.from([...array, 0xc0 + last]);
        const frames = splitSuperframe(bytes);
        expect(frames.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(bytes.length);
        for (const frame of [...frames, bytes]) readVp9Frame(frame);
        vp9KeySize(bytes);
        vp8KeySize(bytes);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
