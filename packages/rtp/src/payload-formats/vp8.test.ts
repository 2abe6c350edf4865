import { beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Vp8RtpPayload } from 'werift';
import { type AssembledFrame, EntryPoint } from './payload-format.js';
import { PictureNumbering } from './picture-numbering.js';
import { VP8, Vp8Reader } from './vp8.js';

/** Maximum length of a written descriptor, bytes. */
const DESCRIPTOR_MAX = 6;

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Reads a descriptor. Properties read hundreds of thousands, for which `expect` would be too slow. */
function parsed(bytes: Buffer, end = bytes.length): Vp8Reader {
  const descriptor = new Vp8Reader();
  if (!descriptor.parse(bytes, 0, end)) throw new Error(`malformed: ${bytes.toString('hex', 0, end)}`);
  return descriptor;
}

const parse = (text: string): Vp8Reader => parsed(hex(text));

/** Returns a descriptor with all fields: 15-bit picture id, TL0PICIDX, TID 1 and KEYIDX. */
function full(pictureId: number, tl0: number, keyIdx: number): Vp8Reader {
  return parsed(Buffer.from([0x90, 0xf0, 0x80 | (pictureId >>> 8), pictureId & 0xff, tl0, 0x40 | keyIdx, 0]));
}

describe('VP8 payload descriptor', () => {
  test('reads the examples of RFC 7741 section 4.5', () => {
    // 4.5.1: first partition of a key frame, picture id 17 in 15 bits; 4.5.2: no extension; 4.5.4: picture id 4711.
    const key = parse('90 80 8011 00');
    expect(key.headerLength).toBe(4);
    expect(key.pictureId).toBe(17);
    expect(key.pictureIdBits).toBe(15);
    expect(key.entryPoint).toBe(EntryPoint.yes);
    const inter = parse('10 01');
    expect(inter.headerLength).toBe(1);
    expect(inter.pictureId).toBe(-1);
    expect(inter.entryPoint).toBe(EntryPoint.no);
    const long = parse('90 80 9267 00');
    expect(long.headerLength).toBe(4);
    expect(long.pictureId).toBe(4711);
    const short = parse('80 80 11 00');
    expect(short.headerLength).toBe(3);
    expect(short.pictureId).toBe(17);
    expect(short.pictureIdBits).toBe(7);
    expect(short.entryPoint).toBe(EntryPoint.no);
  });

  test('reads the temporal layer, and from where a receiver may begin with it', () => {
    expect([parse('90 20 80 01').temporalLayer, parse('90 20 80 01').switchesTo]).toEqual([2, -1]);
    expect([parse('90 20 a0 01').temporalLayer, parse('90 20 a0 01').switchesTo]).toEqual([2, 2]);
    // A key index alone, without a layer.
    expect([parse('90 10 a3 01').temporalLayer, parse('90 10 a3 01').switchesTo]).toEqual([0, -1]);
  });

  test('treats only the first packet of the first partition as an entry point', () => {
    expect(parse('10 00').entryPoint).toBe(EntryPoint.yes);
    expect(parse('00 00').entryPoint).toBe(EntryPoint.no);
    expect(parse('11 00').entryPoint).toBe(EntryPoint.no);
    expect(parse('10').entryPoint).toBe(EntryPoint.no);
  });

  test('agrees with werift on complete descriptors, and never reads beyond the packet', () => {
    let runs = 0;
    const ours = new Vp8Reader();
    const target = Buffer.alloc(20);
    let complete = 0;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(4), (bytes, offset) => {
        runs += 1;
        const buffer = Buffer.concat([Buffer.alloc(offset, 0x80), bytes, Buffer.alloc(6, 0x80)]);
        if (!ours.parse(buffer, offset, offset + bytes.length)) return;
        complete += 1;
        expect(ours.headerLength).toBeLessThanOrEqual(bytes.length);
        const written = ours.write(target, 0, 0);
        expect(written).toBeLessThanOrEqual(DESCRIPTOR_MAX);
        const { pictureId, tl0PicIdx, layerByte } = parsed(target, written);
        expect([pictureId, tl0PicIdx, layerByte]).toEqual([ours.pictureId, ours.tl0PicIdx, ours.layerByte]);
        if (ours.headerLength === bytes.length) return;

        // werift requires a complete payload header after the descriptor.
        const theirs = Vp8RtpPayload.deSerialize(Buffer.concat([bytes, Buffer.alloc(12)]));
        expect(ours.pictureId).toBe(theirs.pictureId ?? -1);
        expect((ours.first & 0x10) >>> 4).toBe(theirs.sBit);
      }),
      { numRuns: fuzzRuns(12_000) },
    );
    expect(complete).toBeGreaterThan(runs / 4);
  });
});

/** Returns the numbers that a receiver sees: picture id, TL0PICIDX and KEYIDX, each -1 if absent. */
function written(reader: Vp8Reader, numbers: number): number[] {
  const target = Buffer.alloc(DESCRIPTOR_MAX);
  const again = parsed(target, reader.write(target, 0, numbers));
  return [again.pictureId, again.tl0PicIdx, again.keyIdx];
}

describe('mapped VP8 numbers', () => {
  let numbering: PictureNumbering;
  beforeEach(() => {
    numbering = new PictureNumbering();
  });
  const send = (reader: Vp8Reader): number[] => written(reader, numbering.map(reader));

  test('continues VP8 numbers at +1 on a switch and keeps gaps', () => {
    const results: number[][] = [];
    numbering.switchTo(full(100, 10, 3));
    results.push(send(full(100, 10, 3)), send(full(100, 10, 3)), send(full(102, 11, 3)));
    numbering.switchTo(full(32_000, 200, 31));
    results.push(send(full(32_000, 200, 31)), send(full(32_001, 201, 31)));
    expect(results).toEqual([
      [100, 10, 3],
      [100, 10, 3],
      [102, 11, 3],
      [103, 12, 4],
      [104, 13, 4],
    ]);
  });

  test('closes the gaps of pictures that are left out, also for packets that come late', () => {
    numbering = new PictureNumbering({ closesGaps: true });
    numbering.switchTo(full(32_766, 10, 3));
    const results = [send(full(32_766, 10, 3))];
    numbering.drop(full(32_767, 10, 3));
    numbering.drop(full(32_767, 10, 3));
    results.push(send(full(0, 11, 3)));
    numbering.drop(full(1, 11, 3));
    numbering.drop(full(3, 11, 3));
    // The second picture was lost.
    results.push(send(full(4, 12, 3)), send(full(2, 11, 3)), send(full(32_766, 10, 3)), send(full(4, 12, 3)));
    expect(results.map(([pictureId]) => pictureId)).toEqual([32_766, 32_767, 1, 0, 32_766, 1]);
    numbering.switchTo(full(500, 50, 5));
    expect(send(full(500, 50, 5))).toEqual([2, 13, 4]);
  });

  test('gives the pictures of the layers that flow consecutive numbers, whichever order their packets come in', () => {
    const picture = fc.record({ isLeftOut: fc.boolean(), packets: fc.integer({ min: 1, max: 4 }), late: fc.nat(6) });
    fc.assert(
      fc.property(fc.nat(0x7fff), fc.array(picture, { minLength: 1, maxLength: 150 }), (first, pictures) => {
        const packets = [{ isLeftOut: false, packets: 1, late: 0 }, ...pictures]
          .flatMap(({ isLeftOut, packets: count, late }, i) =>
            Array.from({ length: count }, (_, part) => ({ i, isLeftOut, at: i + (part === 1 ? late : 0) })),
          )
          .toSorted((a, b) => a.at - b.at || a.i - b.i);
        const mapped = new PictureNumbering({ closesGaps: true });
        mapped.switchTo(full(first, 0, 0));
        const sent = new Map<number, Set<number>>();
        for (const { i, isLeftOut } of packets) {
          const reader = full((first + i) & 0x7fff, 0, 0);
          if (isLeftOut) mapped.drop(reader);
          else sent.set(i, (sent.get(i) ?? new Set()).add(written(reader, mapped.map(reader))[0]!));
        }
        const inOrder = [...sent].toSorted(([a], [b]) => a - b).map(([, ids]) => [...ids]);
        expect(inOrder).toEqual(inOrder.map((_, nth) => [(first + nth) & 0x7fff]));
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });

  test('wraps VP8 numbers at 15, 8 and 5 bits, and does not move them back for a late packet', () => {
    numbering.switchTo(full(32_767, 255, 31));
    send(full(32_767, 255, 31));
    expect(send(full(0, 0, 0))).toEqual([0, 0, 0]);
    expect(send(full(32_767, 255, 31))).toEqual([32_767, 255, 31]);
    numbering.switchTo(full(5, 5, 5));
    expect(send(full(5, 5, 5))).toEqual([1, 1, 1]);
  });

  test('continues the numbers of a 7-bit source in 15 bits past its wrap', () => {
    const outputs: number[][] = [];
    for (let i = 0; i < 400; i += 1) {
      const reader = parse(`90 80 ${((100 + i) % 128).toString(16).padStart(2, '0')} 01`);
      if (i === 0) numbering.switchTo(reader);
      outputs.push(send(reader));
    }
    expect(outputs).toEqual(outputs.map((_, i) => [100 + i, -1, -1]));
  });

  test('omits VP8 numbers where the source has none, and resumes them with the next source that has them', () => {
    numbering.switchTo(full(7, 8, 9));
    send(full(7, 8, 9));
    const bare = parse('10 01');
    numbering.switchTo(bare);
    expect(send(bare)).toEqual([-1, -1, -1]);
    numbering.switchTo(full(1000, 100, 1));
    expect(send(full(1000, 100, 1))).toEqual([8, 9, 10]);
  });

  test("replaces the source's VP8 numbers but keeps the layer id", () => {
    numbering.switchTo(full(0x1233, 0x55, 0x1e));
    numbering.map(full(0x1233, 0x55, 0x1e));
    const reader = full(1, 2, 3);
    numbering.switchTo(reader);
    const target = Buffer.alloc(8, 0xee);
    expect(reader.write(target, 1, numbering.map(reader))).toBe(6);
    expect(target).toEqual(hex('ee 90f0 9234 56 5f ee'));
    expect(reader.temporalLayer).toBe(1);
  });

  test('writes the same header again from the stored word', () => {
    fc.assert(
      fc.property(fc.nat(0x7fff), fc.nat(255), fc.nat(31), (pictureId, tl0, keyIdx) => {
        const reader = full(pictureId, tl0, keyIdx);
        const [kept] = new Int32Array([new PictureNumbering().map(reader)]);
        expect(written(reader, kept!)).toEqual([pictureId, tl0, keyIdx]);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});

describe('VP8 assembler', () => {
  const part = (timestamp: number, options: { start?: boolean; key?: boolean; marker?: boolean }, data: string) => ({
    sequence: 0,
    timestamp,
    marker: options.marker ?? false,
    payload: Buffer.concat([
      Buffer.from([options.start ? 0x90 : 0x80, 0x80, 0x80, timestamp]),
      Buffer.from(options.start ? [options.key ? 0x10 : 0x11] : []),
      Buffer.from(data),
    ]),
  });

  test('joins the parts of a frame without their descriptors', () => {
    const vp8 = VP8.createAssembler();
    expect(vp8.push(part(1, { start: true, key: true }, 'ab'))).toEqual([]);
    const [frame] = vp8.push(part(1, { marker: true }, 'cd')) as [AssembledFrame];
    expect(frame.key).toBe(true);
    expect(frame.data).toEqual(Buffer.from('\x10abcd', 'latin1'));
  });

  test('waits for a key frame at the start and after a loss', () => {
    const vp8 = VP8.createAssembler();
    expect(vp8.push(part(1, { start: true, marker: true }, 'x'))).toEqual([]);
    expect(vp8.push(part(2, { start: true, key: true, marker: true }, 'x'))[0]?.key).toBe(true);
    expect(vp8.push(part(3, { start: true, marker: true }, 'x'))[0]?.key).toBe(false);
    vp8.gap();
    expect(vp8.push(part(4, { start: true, marker: true }, 'x'))).toEqual([]);
    expect(vp8.needsKeyframe).toBe(true);
  });

  test('returns both frames when one packet ends them, the earlier one without a marker', () => {
    const vp8 = VP8.createAssembler();
    expect(vp8.push(part(1, { start: true, key: true }, 'ab'))).toEqual([]);
    const frames = vp8.push(part(2, { start: true, marker: true }, 'cd'));
    expect(frames.map(({ timestamp, key }) => [timestamp, key])).toEqual([
      [1, true],
      [2, false],
    ]);
  });
});

test('drops a VP8 picture in endless tiny parts, and accepts the next key frame', () => {
  const vp8 = VP8.createAssembler();
  const part = (payload: number[], timestamp: number, marker: boolean) =>
    vp8.push({ sequence: 0, timestamp, marker, payload: Buffer.from(payload) });
  part([0x10, 0], 1, true);
  expect(vp8.needsKeyframe).toBe(false);
  part([0x10, 0], 2, false);
  for (let i = 0; i < 20_000; i += 1) part([0, i & 0xff], 2, false);
  expect(vp8.needsKeyframe).toBe(true);
  expect(part([0, 1], 2, true)).toEqual([]);
  expect(part([0x10, 0], 3, true)).toMatchObject([{ key: true }]);
});

test('never throws in the VP8 assembler on garbage', () => {
  const packet = fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.boolean(), fc.nat(3), fc.boolean());
  fc.assert(
    fc.property(fc.array(packet), (input) => {
      const vp8 = VP8.createAssembler();
      for (const [bytes, marker, timestamp, lost] of input) {
        if (lost) vp8.gap();
        vp8.push({ sequence: 0, timestamp, marker, payload: Buffer.from(bytes) });
      }
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});

test('reassembles a packetised VP8 frame unchanged, whatever its size', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), (size) => {
      const frame = Buffer.alloc(size, 0x10);
      const { key, payloads } = VP8.packetise(frame);
      expect(key).toBe(true);
      const vp8 = VP8.createAssembler();
      const frames = payloads.flatMap((payload, i) =>
        vp8.push({ sequence: i, timestamp: 1, marker: i === payloads.length - 1, payload }),
      );
      expect(frames).toEqual([{ timestamp: 1, key: true, data: frame }]);
    }),
    { numRuns: fuzzRuns(500) },
  );
});
