import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Vp8RtpPayload } from 'werift';
import { VP8_DESCRIPTOR_MAX, Vp8Descriptor, Vp8Mapper, writeVp8Descriptor } from './vp8.js';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

function parse(text: string): Vp8Descriptor {
  const descriptor = new Vp8Descriptor();
  const bytes = hex(text);
  expect(descriptor.parse(bytes, 0, bytes.length)).toBe(true);
  return descriptor;
}

/** A descriptor with everything: 15-bit picture id, TL0PICIDX, TID 1 and KEYIDX. */
function full(pictureId: number, tl0: number, keyIdx: number): Vp8Descriptor {
  const bytes = Buffer.from([0x90, 0xf0, 0x80 | (pictureId >>> 8), pictureId & 0xff, tl0, 0x40 | keyIdx, 0]);
  const descriptor = new Vp8Descriptor();
  expect(descriptor.parse(bytes, 0, bytes.length)).toBe(true);
  return descriptor;
}

describe('the VP8 payload descriptor', () => {
  test('is read as in the examples of RFC 7741 section 4.5', () => {
    // 4.5.1: first partition of a key frame, picture id 17 in 15 bits; 4.5.2 without any extension; 4.5.4: picture id 4711.
    const key = parse('90 80 8011 00');
    expect([key.length, key.pictureId, key.pictureIdBits, key.isKeyFrameStart]).toEqual([4, 17, 15, true]);
    const inter = parse('10 01');
    expect([inter.length, inter.pictureId, inter.isKeyFrameStart]).toEqual([1, -1, false]);
    const long = parse('90 80 9267 00');
    expect([long.length, long.pictureId]).toEqual([4, 4711]);
    const short = parse('80 80 11 00');
    expect([short.length, short.pictureId, short.pictureIdBits, short.isKeyFrameStart]).toEqual([3, 17, 7, false]);
  });

  test('is a key frame start only in the first packet of the first partition', () => {
    expect(parse('10 00').isKeyFrameStart).toBe(true);
    expect(parse('00 00').isKeyFrameStart).toBe(false);
    expect(parse('11 00').isKeyFrameStart).toBe(false);
    expect(parse('10').isKeyFrameStart).toBe(false);
  });

  test('agrees with werift on whatever is complete, and is never read beyond the packet', () => {
    let runs = 0;
    const ours = new Vp8Descriptor();
    const target = Buffer.alloc(20);
    let complete = 0;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(4), (bytes, offset) => {
        runs += 1;
        const buffer = Buffer.concat([Buffer.alloc(offset, 0x80), bytes, Buffer.alloc(6, 0x80)]);
        if (!ours.parse(buffer, offset, offset + bytes.length)) return;
        complete += 1;
        expect(ours.length).toBeLessThanOrEqual(bytes.length);
        const written = writeVp8Descriptor(target, 0, ours, -1, -1, -1);
        expect(written).toBeLessThanOrEqual(VP8_DESCRIPTOR_MAX);
        const again = new Vp8Descriptor();
        expect(again.parse(target, 0, written)).toBe(true);
        expect([again.pictureId, again.tl0PicIdx, again.layerByte]).toEqual([
          ours.pictureId,
          ours.tl0PicIdx,
          ours.layerByte,
        ]);
        if (ours.length === bytes.length) return;

        // It insists on a complete payload header behind the descriptor.
        const theirs = Vp8RtpPayload.deSerialize(Buffer.concat([bytes, Buffer.alloc(12)]));
        expect(ours.pictureId).toBe(theirs.pictureId ?? -1);
        expect((ours.first & 0x10) >>> 4).toBe(theirs.sBit);
      }),
      { numRuns: fuzzRuns(12_000) },
    );
    expect(complete).toBeGreaterThan(runs / 4);
  });
});

describe('mapped VP8 fields', () => {
  test('continue at +1 on a switch and keep gaps', () => {
    const mapper = new Vp8Mapper();
    const results: number[][] = [];
    const send = (descriptor: Vp8Descriptor) => {
      mapper.map(descriptor);
      results.push([mapper.pictureId, mapper.tl0PicIdx, mapper.keyIdx]);
    };
    mapper.switchTo(full(100, 10, 3));
    send(full(100, 10, 3));
    send(full(100, 10, 3));
    send(full(102, 11, 3));
    mapper.switchTo(full(32_000, 200, 31));
    send(full(32_000, 200, 31));
    send(full(32_001, 201, 31));
    expect(results).toEqual([
      [100, 10, 3],
      [100, 10, 3],
      [102, 11, 3],
      [103, 12, 4],
      [104, 13, 4],
    ]);
  });

  test('wrap at 15, 8 and 5 bits, and a late packet does not turn the clock back', () => {
    const mapper = new Vp8Mapper();
    mapper.switchTo(full(32_767, 255, 31));
    mapper.map(full(32_767, 255, 31));
    mapper.map(full(0, 0, 0));
    expect([mapper.pictureId, mapper.tl0PicIdx, mapper.keyIdx]).toEqual([0, 0, 0]);
    mapper.map(full(32_767, 255, 31));
    expect(mapper.pictureId).toBe(32_767);
    mapper.switchTo(full(5, 5, 5));
    mapper.map(full(5, 5, 5));
    expect([mapper.pictureId, mapper.tl0PicIdx, mapper.keyIdx]).toEqual([1, 1, 1]);
  });

  test('of a 7-bit source go on in 15 bits beyond its wrap', () => {
    const mapper = new Vp8Mapper();
    const outputs: number[] = [];
    for (let i = 0; i < 400; i += 1) {
      const descriptor = parse(`90 80 ${((100 + i) % 128).toString(16).padStart(2, '0')} 01`);
      if (i === 0) mapper.switchTo(descriptor);
      mapper.map(descriptor);
      outputs.push(mapper.pictureId);
      const target = Buffer.alloc(6);
      expect(writeVp8Descriptor(target, 0, descriptor, mapper.pictureId, -1, -1)).toBe(4);
      expect(target.readUInt16BE(2)).toBe(0x8000 | mapper.pictureId);
    }
    expect(outputs).toEqual(outputs.map((_, i) => 100 + i));
  });

  test('stay away where the source has none, and come back after such a source', () => {
    const mapper = new Vp8Mapper();
    mapper.switchTo(full(7, 8, 9));
    mapper.map(full(7, 8, 9));
    const bare = parse('10 01');
    mapper.switchTo(bare);
    mapper.map(bare);
    expect([mapper.pictureId, mapper.tl0PicIdx, mapper.keyIdx]).toEqual([-1, -1, -1]);
    mapper.switchTo(full(1000, 100, 1));
    mapper.map(full(1000, 100, 1));
    expect([mapper.pictureId, mapper.tl0PicIdx, mapper.keyIdx]).toEqual([8, 9, 10]);
  });

  test('are written over the source’s, the layer id kept', () => {
    const target = Buffer.alloc(8, 0xee);
    const descriptor = full(1, 2, 3);
    expect(writeVp8Descriptor(target, 1, descriptor, 0x1234, 0x56, 0x1f)).toBe(6);
    expect(target).toEqual(hex('ee 90f0 9234 56 5f ee'));
    expect([descriptor.tid, descriptor.keyIdx]).toEqual([1, 3]);
  });
});
