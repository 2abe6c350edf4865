import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ComponentError } from '../errors.js';
import { cluster, Cues, type WebmEnd, webmHeader, type WebmPicture } from './webm-file.js';
import { type ShownPicture, WebmReader } from './webm-reader.js';

const track = { codec: 'vp8', width: 640, height: 360 } as const;
const first: WebmPicture = { timeMs: 0, key: true, data: Buffer.from('first') };
const second: WebmPicture = { timeMs: 33, key: false, data: Buffer.from('second') };
const third: WebmPicture = { timeMs: 5_000, key: true, data: Buffer.from('third') };

const open = Buffer.concat([webmHeader(track), cluster([first, second]), cluster([third])]);
const complete = ((): Buffer => {
  const cues = new Cues();
  cues.add(0, webmHeader(track).length);
  cues.add(5_000, open.length - cluster([third]).length);
  const bytes = cues.bytes();
  const end: WebmEnd = { durationMs: 5_040, cuesAt: open.length, bytes: open.length + bytes.length };
  const header = webmHeader(track, end);

  return Buffer.concat([header, open.subarray(header.length), bytes]);
})();

function read(bytes: Buffer, piece = bytes.length): { reader: WebmReader; pictures: ShownPicture[] } {
  const reader = new WebmReader();
  const pictures: ShownPicture[] = [];
  for (let at = 0; at < bytes.length; at += piece) pictures.push(...reader.push(bytes.subarray(at, at + piece)));

  return { reader, pictures: [...pictures, ...reader.end()] };
}

describe('a recorded WebM file', () => {
  test('is read as it was written, however it is split', () => {
    for (const piece of [1, 7, 100, complete.length]) {
      const { reader, pictures } = read(complete, piece);
      expect(reader.track).toEqual(track);
      expect(pictures).toEqual([
        { ...first, durationMs: 33 },
        { ...second, durationMs: 4_967 },
        { ...third, durationMs: 40 },
      ]);
      expect(reader.endMs).toBe(5_040);
      expect(reader.wholeBytes).toBe(open.length);
      expect(complete.subarray(open.length).equals(reader.cues.bytes())).toBe(true);
    }
  });

  test('has a header of the same length when it is complete', () => {
    expect(webmHeader(track, { durationMs: 1, cuesAt: 500, bytes: 2 ** 40 })).toHaveLength(webmHeader(track).length);
  });

  test('lets its last picture last a thirtieth of a second before it is complete', () => {
    const { reader, pictures } = read(open);
    expect(pictures.at(-1)?.durationMs).toBeCloseTo(1_000 / 30);
    expect(reader.endMs).toBeCloseTo(5_033, 0);
  });

  test('is read up to the last complete cluster', () => {
    for (let cut = 1; cut < cluster([third]).length; cut++) {
      const { reader, pictures } = read(open.subarray(0, open.length - cut));
      expect(pictures).toHaveLength(2);
      expect(reader.endMs).toBeCloseTo(66, 0);
      expect(reader.wholeBytes).toBe(open.length - cluster([third]).length);
    }
  });

  test('has no more than 8,192 places to seek to, over its whole length', () => {
    const cues = new Cues();
    for (let i = 0; i < 100_000; i++) cues.add(i * 1_000, 1_000 + i);
    const bytes = cues.bytes();
    expect(bytes.length).toBeLessThan(8_192 * 60);
    expect(bytes.length).toBeGreaterThan(2_000 * 40);
    expect(bytes.readBigUInt64BE(bytes.length - 8)).toBeGreaterThan(95_000n);
  });

  const broken = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(open);
    change(bytes);
    return bytes;
  };
  const segment = Buffer.from('1853806701ffffffffffffff', 'hex');

  test.each([
    ['an element without an id', broken((bytes) => bytes.writeUInt8(0, 0))],
    ['an element of 1073741824 bytes', Buffer.concat([segment, Buffer.from('1f43b6750840000000', 'hex')])],
    ['an element without a length', Buffer.concat([segment, Buffer.from('ec01ffffffffffffff', 'hex')])],
    ['the codec "V_AV9"', broken((bytes) => bytes.write('V_AV9', open.indexOf('V_VP8')))],
    ['pictures before the track', Buffer.concat([segment, cluster([first])])],
    ['a block of another track', broken((bytes) => bytes.writeUInt8(0x82, open.indexOf('first') - 4))],
    ['a block without a picture', broken((bytes) => bytes.writeUInt32BE(0x1000_0001, open.indexOf('third') - 8))],
    ['an element of 256 bytes in 9', broken((bytes) => bytes.writeUInt32BE(0x1000_0100, open.indexOf('third') - 8))],
  ])('is refused with %s', (reason, bytes) => {
    expect(() => read(bytes)).toThrow(reason);
  });

  test('throws only the documented error for garbage', () => {
    const mutated = fc.array(fc.tuple(fc.nat(complete.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(complete);
      for (const [place, value] of changes) bytes[place] = value;
      return bytes;
    });
    const bytes = fc.oneof(
      { weight: 4, arbitrary: mutated },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array)) },
    );
    let [runs, failures] = [0, 0];
    fc.assert(
      fc.property(bytes, fc.integer({ min: 20, max: 500 }), (given, piece) => {
        runs += 1;
        try {
          for (const { durationMs } of read(given, piece).pictures) expect(durationMs).toBeGreaterThanOrEqual(0);
        } catch (error) {
          failures += 1;
          expect(error).toBeInstanceOf(ComponentError);
          expect(error).toMatchObject({ code: 'BAD_WEBM' });
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect(failures).toBeGreaterThan(runs / 100);
  });
});
