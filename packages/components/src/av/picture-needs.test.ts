import { expect, test } from '@jest/globals';
import { toAnnexB } from '@bloom/rtp';
import { idr, picture } from '../testing/room.js';
import { parameterSet, type ParameterSetOptions } from '../testing/parameter-set.js';
import { vp8Key, vp9Frame } from '../testing/vpx.js';
import { PictureNeeds } from './picture-needs.js';

const MIB = 1024 * 1024;
const FULL_HD = { columns: 120, rows: 68 } as const;

/** Returns why the decoder is refused, or its memory in MiB. */
function needs(...sets: ParameterSetOptions[]): string | number {
  const read = new PictureNeeds();
  const refusal = read.read('h264', toAnnexB([...sets.map(parameterSet), idr()]));

  return refusal ?? Math.round(read.bytes(0) / MIB);
}

test('accepts pictures of any shape up to level 5.2', () => {
  expect(needs({ level: 52, columns: 256, rows: 144 })).toBe(55);
  expect(needs({ level: 52, columns: 144, rows: 256 })).toBe(55);
  expect(needs({ level: 52, columns: 257, rows: 144 })).toBe('its pictures of 4112x2304 are larger than 4096x2304');
  expect(needs({ level: 52, columns: 544, rows: 1 })).toBe('its pictures of 8704x16 are larger than 4096x2304');
  expect(needs({ level: 60 })).toBe('its H.264 level 6 is above 5.2');
});

test('lets a decoder keep as many pictures as its level allows', () => {
  expect(needs({ ...FULL_HD, references: 4 })).toBe(25);
  expect(needs({ ...FULL_HD, references: 16 })).toBe(
    'its decoder has to keep 16 pictures of 1920x1088, and H.264 level 4 allows 4',
  );
  expect(needs({ ...FULL_HD, level: 50, references: 13 })).toBe(61);
  expect(needs({ ...FULL_HD, level: 50, references: 14 })).toContain('level 5 allows 13');
  expect(needs({ level: 40, references: 17 })).toContain('level 4 allows 16');
});

test('counts the pictures waiting for their order', () => {
  expect(needs({ ...FULL_HD, restriction: [0, 5] })).toContain('has to keep 5 pictures');
  expect(needs({ ...FULL_HD, restriction: [5, 0] })).toContain('has to keep 5 pictures');
  expect(needs({ ...FULL_HD, restriction: [2, 4] })).toBe(21);
});

test('allows four pictures to an encoder that announces too low a level', () => {
  expect(needs({ ...FULL_HD, level: 30, references: 4 })).toBe(25);
  expect(needs({ ...FULL_HD, level: 30, references: 5 })).toContain('level 3 allows 4');
});

test('counts more memory for more colour and more bits', () => {
  const high = { ...FULL_HD, profile: 244, references: 2 } as const;
  expect(needs(high)).toBe(17);
  expect(needs({ ...high, chroma: 3 })).toBe(29);
  expect(needs({ ...high, chroma: 3, bitDepth: 10 })).toBe(53);
});

test('counts the largest of several parameter sets until it is replaced', () => {
  const read = new PictureNeeds();
  read.read('h264', toAnnexB([parameterSet({ ...FULL_HD, id: 1 }), parameterSet({ id: 2 }), idr()]));
  const large = read.bytes(0);
  read.read('h264', toAnnexB([picture()]));
  expect(read.bytes(0)).toBe(large);
  read.read('h264', toAnnexB([parameterSet({ id: 1 }), picture()]));
  expect(read.bytes(0)).toBeLessThan(large / 8);
});

test('adds memory for pictures the decoder starts to hold back', () => {
  const read = new PictureNeeds();
  read.read('h264', toAnnexB([parameterSet(FULL_HD), idr()]));
  const before = read.bytes(0);
  expect((read.bytes(16) - before) / 16 / MIB).toBeCloseTo(4, 0);
});

test('rejects parameter sets it cannot read and pictures full of start codes', () => {
  const read = new PictureNeeds();
  expect(read.read('h264', toAnnexB([Buffer.from([0x67, 1, 2]), idr()]))).toBe('its sequence parameter set is invalid');
  const full = Buffer.concat(Array.from({ length: 4_097 }, () => Buffer.from([0, 0, 1, 9])));
  expect(read.read('h264', full)).toBe('a picture has more than 4096 NAL units');
});

test('reads the size of VP8 pictures from key frames', () => {
  const read = new PictureNeeds();
  expect(read.read('vp8', vp8Key(1_280, 720))).toBeUndefined();
  expect(Math.round(read.bytes(0) / MIB)).toBe(12);
  expect(read.read('vp8', vp8Key(16_383, 16_383))).toBe('its pictures of 16383x16383 are larger than 4096x2304');
  const later = vp8Key(16_383, 16_383);
  later[0] = 1;
  expect(read.read('vp8', later)).toBeUndefined();
  expect(read.read('vp8', Buffer.alloc(0))).toBeUndefined();
});

test('reads the size of VP9 pictures from any frame, and counts the largest since the last key frame', () => {
  const read = new PictureNeeds();
  const mebibytes = (): number => Math.round(read.bytes(0) / MIB);
  expect(read.read('vp9', vp9Frame({ key: true, size: [320, 180] }))).toBeUndefined();
  expect(mebibytes()).toBe(2);
  expect(read.read('vp9', vp9Frame({ size: [1_280, 720] }))).toBeUndefined();
  expect(mebibytes()).toBe(19);
  expect(read.read('vp9', vp9Frame({ size: [64, 64] }))).toBeUndefined();
  expect(read.read('vp9', vp9Frame({}))).toBeUndefined();
  expect(mebibytes()).toBe(19);
  expect(read.read('vp9', vp9Frame({ key: true, size: [320, 180] }))).toBeUndefined();
  expect(mebibytes()).toBe(2);
});

test('refuses VP9 pictures beyond the limits in every frame that can have a size', () => {
  const refusal = 'its pictures of 65536x65536 are larger than 4096x2304';
  const size = [65_536, 65_536] as const;
  const shapes = [{ key: true }, {}, { shown: false }, { shown: false, intraOnly: true }];
  for (const shape of shapes) expect(new PictureNeeds().read('vp9', vp9Frame({ ...shape, size }))).toBe(refusal);
  // The second frame of a picture with layers.
  const [small, large] = [vp9Frame({ key: true, size: [16, 16] }), vp9Frame({ size })];
  const index = Buffer.of(0xc1, small.length, large.length, 0xc1);
  expect(new PictureNeeds().read('vp9', Buffer.concat([small, large, index]))).toBe(refusal);
});

test('refuses VP9 that it cannot read, and other profiles than 0', () => {
  expect(new PictureNeeds().read('vp9', Buffer.alloc(3))).toBe('a frame header is invalid');
  const high = vp9Frame({ profile: 2, key: true, size: [320, 180] });
  expect(new PictureNeeds().read('vp9', high)).toBe('its VP9 profile is 2, and only 0 is decoded');
});
