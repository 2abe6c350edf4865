import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { EntryPoint } from './payload-format.js';
import { PictureNumbering } from './picture-numbering.js';
import { VP9, Vp9Reader } from './vp9.js';

/** Maximum length of a written descriptor, bytes. */
const DESCRIPTOR_MAX = 5;

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

function read(text: string): Vp9Reader | undefined {
  const reader = new Vp9Reader();
  const bytes = hex(text);
  return reader.parse(bytes, 0, bytes.length) ? reader : undefined;
}

function parse(text: string): Vp9Reader {
  const reader = read(text);
  if (reader === undefined) throw new Error(`malformed: ${text}`);
  return reader;
}

describe('VP9 payload descriptor', () => {
  test('reads picture id, layers and TL0PICIDX in the non-flexible mode', () => {
    const reader = parse('a8 9267 52 17 00');
    expect(reader).toMatchObject({ pictureId: 0x1267, pictureIdBits: 15, temporalLayer: 2, spatialLayer: 1 });
    expect(reader).toMatchObject({ tl0PicIdx: 0x17, headerLength: 5 });
  });

  test('reads a short picture id, and reference indices instead of TL0PICIDX in the flexible mode', () => {
    const reader = parse('f8 11 20 03 02 ff');
    expect(reader).toMatchObject({ pictureId: 0x11, pictureIdBits: 7, temporalLayer: 1, spatialLayer: 0 });
    expect(reader).toMatchObject({ tl0PicIdx: -1, headerLength: 3 });
  });

  test('lets a receiver begin only with the first packet of the lowest layer of a key picture', () => {
    expect(parse('88 11 00').entryPoint).toBe(EntryPoint.yes);
    expect(parse('a8 11 00 01 00').entryPoint).toBe(EntryPoint.yes);
    expect(parse('80 11 00').entryPoint).toBe(EntryPoint.no);
    expect(parse('a8 11 02 01 00').entryPoint).toBe(EntryPoint.no);
    expect(parse('c8 11 00').entryPoint).toBe(EntryPoint.no);
  });

  test('leaves the scalability structure in the payload', () => {
    // Two layers with their sizes, and two pictures with one and no reference.
    const reader = parse('8a 11 38 0140 00b4 0280 0168 02 04 01 00 ff');
    expect(reader).toMatchObject({ headerLength: 2, entryPoint: EntryPoint.yes });
  });

  test.each([
    ['no descriptor', ''],
    ['no data', '88 11'],
    ['no picture id', '80'],
    ['half a picture id', '80 91'],
    ['no layer', 'a0 11'],
    ['no TL0PICIDX', 'a0 11 00'],
    ['a fourth reference index', 'd0 11 03 03 03 02 00'],
    ['an endless list of references', 'd0 11 03'],
    ['a structure without its sizes', '8a 11 f0 0140'],
    ['a structure without its pictures', '8a 11 08 ff 0c'],
  ])('refuses a packet with %s', (_fault, text) => {
    expect(read(text)).toBeUndefined();
  });

  test('reads only within the packet, and what it writes reads the same', () => {
    let complete = 0;
    const reader = new Vp9Reader();
    const again = new Vp9Reader();
    const target = Buffer.alloc(DESCRIPTOR_MAX + 16);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 16 }), fc.nat(4), (bytes, offset) => {
        const buffer = Buffer.concat([Buffer.alloc(offset, 0x80), bytes, Buffer.alloc(6, 0x80)]);
        const end = offset + bytes.length;
        if (!reader.parse(buffer, offset, end)) return;
        complete += 1;
        expect(reader.headerLength).toBeLessThan(bytes.length);
        const written = reader.write(target, 0, 0);
        expect(written).toBeLessThanOrEqual(DESCRIPTOR_MAX);
        const rest = buffer.subarray(offset + reader.headerLength, end);
        rest.copy(target, written);
        expect(again.parse(target, 0, written + rest.length)).toBe(true);
        expect(again.headerLength).toBe(written);
        for (const key of ['pictureId', 'layerByte', 'tl0PicIdx', 'entryPoint'] as const) {
          expect(again[key]).toBe(reader[key]);
        }
      }),
      { numRuns: fuzzRuns(12_000) },
    );
    expect(complete).toBeGreaterThan(100);
  });
});

test('continues VP9 numbers at +1 when the source changes, in 15 bits', () => {
  const numbering = new PictureNumbering();
  const sent = (reader: Vp9Reader): number[] => {
    const target = Buffer.alloc(DESCRIPTOR_MAX + 1);
    const again = new Vp9Reader();
    expect(again.parse(target, 0, reader.write(target, 0, numbering.map(reader)) + 1)).toBe(true);
    return [again.pictureId, again.tl0PicIdx];
  };
  const first = parse('a8 9267 00 17 00');
  numbering.switchTo(first);
  expect(sent(first)).toEqual([0x1267, 0x17]);
  const other = parse('a8 05 00 fe 00');
  numbering.switchTo(other);
  expect([sent(other), sent(parse('a8 06 00 ff 00')), sent(parse('a8 07 00 00 00'))]).toEqual([
    [0x1268, 0x18],
    [0x1269, 0x19],
    [0x126a, 0x1a],
  ]);
});

test('accepts publishers of the one VP9 profile that all receivers decode', () => {
  expect(VP9.obstacle('')).toBeUndefined();
  expect(VP9.obstacle('profile-id=0')).toBeUndefined();
  expect(VP9.obstacle('profile-id=2')).toBe('profile-id 2');
  expect(VP9.rank('profile-id=0')).toBeGreaterThan(VP9.rank('profile-id=2'));
});
