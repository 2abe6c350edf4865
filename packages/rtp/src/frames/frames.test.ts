import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { H264AccessUnit } from './h264.js';
import type { OrderedPacket } from '../index.js';
import type { Vp8Frame } from './vp8.js';
import {
  H264Depacketiser,
  NalType,
  nalType,
  opusSamples,
  packetiseH264,
  ReorderBuffer,
  toAnnexB,
  Vp8Depacketiser,
} from '../index.js';

/** The first bit after the header is set: a slice with it begins its picture. */
const nal = (type: number, size: number, fill = 0x80 | type): Buffer =>
  Buffer.concat([Buffer.from([0x60 | type]), Buffer.alloc(size - 1, fill)]);
const sps = nal(NalType.sps, 12);
const pps = nal(NalType.pps, 5);

function packets(nals: readonly Buffer[], timestamp: number, first: number): OrderedPacket[] {
  const payloads = packetiseH264(nals, 100);
  return payloads.map((payload, i) => ({
    sequence: first + i,
    timestamp,
    marker: i === payloads.length - 1,
    payload,
  }));
}

describe('the reorder buffer', () => {
  const collect = () => {
    const seen: (number | string)[] = [];
    return {
      seen,
      out: {
        packet: (p: OrderedPacket) => seen.push(p.sequence),
        gap: (n: number) => seen.push(`gap ${n}`),
      },
    };
  };
  const packet = (sequence: number): OrderedPacket => ({
    sequence,
    timestamp: 0,
    marker: false,
    payload: Buffer.alloc(1),
  });

  test('puts late packets back in their place', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 100 });
    const { seen, out } = collect();
    for (const [at, sequence] of [10, 12, 11, 14, 13].entries()) {
      buffer.push(packet(sequence), at);
      buffer.drain(at, out);
    }
    expect(seen).toEqual([10, 11, 12, 13, 14]);
    expect(buffer.size).toBe(0);
  });

  test('gives a missing packet up after the delay, and ignores it when it comes after all', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 100 });
    const { seen, out } = collect();
    buffer.push(packet(1), 0);
    buffer.push(packet(4), 10);
    buffer.drain(109, out);
    expect(seen).toEqual([1]);
    buffer.drain(110, out);
    buffer.push(packet(2), 111);
    buffer.drain(300, out);
    expect(seen).toEqual([1, 'gap 2', 4]);
  });

  test('never holds more than it may', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 1e9, maxPackets: 16 });
    const { out } = collect();
    for (let i = 0; i < 1000; i += 1) {
      buffer.push(packet(i * 2), i);
      buffer.drain(i, out);
      expect(buffer.size).toBeLessThanOrEqual(16);
    }
  });
});

describe('H.264', () => {
  test('what was packetised comes back as the same NAL units, whatever their sizes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 2, max: 700 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 40, max: 1200 }),
        (sizes, maxBytes) => {
          const nals = [sps, pps, ...sizes.map((size, i) => nal(NalType.idr, size, 0x80 | i))];
          const payloads = packetiseH264(nals, maxBytes);
          expect(payloads.every((p) => p.length <= maxBytes)).toBe(true);
          const depacketiser = new H264Depacketiser();
          let unit: H264AccessUnit | undefined;
          payloads.forEach((payload, i) => {
            [unit] = depacketiser.push({ sequence: i, timestamp: 7, marker: i === payloads.length - 1, payload });
          });
          expect(unit?.key).toBe(true);
          expect(unit && toAnnexB(unit.nals).equals(toAnnexB(nals))).toBe(true);
        },
      ),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('begins with a key picture and its parameter sets', () => {
    const depacketiser = new H264Depacketiser();
    const run = (list: OrderedPacket[]) => list.flatMap((p) => depacketiser.push(p)).at(-1);
    expect(run(packets([nal(NalType.slice, 50)], 1, 0))).toBeUndefined();
    expect(depacketiser.needsKeyFrame).toBe(true);
    expect(run(packets([nal(NalType.idr, 50)], 2, 1))).toBeUndefined();
    expect(run(packets([sps, pps], 3, 2))).toBeUndefined();
    expect(run(packets([nal(NalType.idr, 250)], 4, 3))?.nals.map(nalType)).toEqual([7, 8, 5]);
    expect(depacketiser.needsKeyFrame).toBe(false);
    expect(run(packets([nal(NalType.slice, 50)], 5, 9))).toMatchObject({ key: false, timestamp: 5 });
  });

  test('a slice that starts with 0x41 is no key picture, and parameter sets beside an IDR in one packet are', () => {
    const depacketiser = new H264Depacketiser();
    const start = packets([sps, pps, nal(NalType.idr, 20)], 1, 0);
    expect(start).toHaveLength(1);
    expect(depacketiser.push(start[0] as OrderedPacket)[0]?.key).toBe(true);
    const slice = Buffer.from([0x41, 0x85, 0x10]);
    expect(depacketiser.push({ sequence: 1, timestamp: 2, marker: true, payload: slice })[0]?.key).toBe(false);
  });

  test('after a loss nothing comes out before the next key picture', () => {
    const depacketiser = new H264Depacketiser();
    for (const p of packets([sps, pps, nal(NalType.idr, 300)], 1, 0)) depacketiser.push(p);
    const broken = packets([nal(NalType.slice, 300)], 2, 10);
    depacketiser.push(broken[0] as OrderedPacket);
    depacketiser.gap();
    expect(depacketiser.push(broken[2] as OrderedPacket)).toEqual([]);
    expect(depacketiser.push(packets([nal(NalType.slice, 50)], 3, 20)[0] as OrderedPacket)).toEqual([]);
    expect(depacketiser.needsKeyFrame).toBe(true);
    const healed = packets([nal(NalType.idr, 50)], 4, 21).flatMap((p) => depacketiser.push(p));
    expect(healed.at(-1)?.key).toBe(true);
  });

  test('a key picture whose first slices are lost is no key picture', () => {
    const depacketiser = new H264Depacketiser();
    const slices = [nal(NalType.idr, 60), nal(NalType.idr, 60, 0x40), nal(NalType.idr, 60, 0x20)];
    const complete = (timestamp: number, nals: readonly Buffer[]) =>
      packets(nals, timestamp, timestamp * 10).flatMap((p) => depacketiser.push(p));
    expect(complete(1, [sps, pps, ...slices]).at(-1)?.nals).toHaveLength(5);
    depacketiser.gap();
    expect(complete(2, slices.slice(1))).toEqual([]);
    expect(depacketiser.needsKeyFrame).toBe(true);
    expect(complete(3, slices).at(-1)?.nals).toHaveLength(5);
  });

  test('the end of a fragmented NAL unit without its start breaks the picture instead of inventing one', () => {
    const depacketiser = new H264Depacketiser();
    for (const p of packets([sps, pps, nal(NalType.idr, 20)], 1, 0)) depacketiser.push(p);
    const parts = packets([nal(NalType.idr, 300)], 2, 5);
    expect(depacketiser.push(parts.at(-1) as OrderedPacket)).toEqual([]);
  });

  test('a packet that ends two pictures, the one before without a marker, gives both', () => {
    const depacketiser = new H264Depacketiser();
    for (const p of packets([sps, pps, nal(NalType.idr, 20)], 1, 0)) depacketiser.push(p);
    const [unmarked, marked] = [2, 3].flatMap((timestamp) => packets([nal(NalType.slice, 20)], timestamp, timestamp));
    expect(depacketiser.push({ ...unmarked!, marker: false })).toEqual([]);
    expect(depacketiser.push(marked!).map(({ timestamp }) => timestamp)).toEqual([2, 3]);
  });

  test('garbage never throws', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.boolean(), fc.integer({ min: 0, max: 3 }), fc.boolean()),
        ),
        (input) => {
          const depacketiser = new H264Depacketiser();
          const vp8 = new Vp8Depacketiser();
          for (const [bytes, marker, timestamp, lost] of input) {
            if (lost) {
              depacketiser.gap();
              vp8.gap();
            }
            const p = { sequence: 0, timestamp, marker, payload: Buffer.from(bytes) };
            depacketiser.push(p);
            vp8.push(p);
          }
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

describe('VP8', () => {
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
    const vp8 = new Vp8Depacketiser();
    expect(vp8.push(part(1, { start: true, key: true }, 'ab'))).toEqual([]);
    const [frame] = vp8.push(part(1, { marker: true }, 'cd')) as [Vp8Frame];
    expect(frame.key).toBe(true);
    expect(frame.data).toEqual(Buffer.from('\x10abcd', 'latin1'));
  });

  test('waits for a key frame at the start and after a loss', () => {
    const vp8 = new Vp8Depacketiser();
    expect(vp8.push(part(1, { start: true, marker: true }, 'x'))).toEqual([]);
    expect(vp8.push(part(2, { start: true, key: true, marker: true }, 'x'))[0]?.key).toBe(true);
    expect(vp8.push(part(3, { start: true, marker: true }, 'x'))[0]?.key).toBe(false);
    vp8.gap();
    expect(vp8.push(part(4, { start: true, marker: true }, 'x'))).toEqual([]);
    expect(vp8.needsKeyFrame).toBe(true);
  });

  test('gives both frames that one packet ends, the one before without a marker', () => {
    const vp8 = new Vp8Depacketiser();
    expect(vp8.push(part(1, { start: true, key: true }, 'ab'))).toEqual([]);
    const frames = vp8.push(part(2, { start: true, marker: true }, 'cd'));
    expect(frames.map(({ timestamp, key }) => [timestamp, key])).toEqual([
      [1, true],
      [2, false],
    ]);
  });
});

test('a picture of VP8 in tiny parts without an end is dropped, and the next key frame is one', () => {
  const vp8 = new Vp8Depacketiser();
  const part = (payload: number[], timestamp: number, marker: boolean) =>
    vp8.push({ sequence: 0, timestamp, marker, payload: Buffer.from(payload) });
  part([0x10, 0], 1, true);
  expect(vp8.needsKeyFrame).toBe(false);
  part([0x10, 0], 2, false);
  for (let i = 0; i < 20_000; i += 1) part([0, i & 0xff], 2, false);
  expect(vp8.needsKeyFrame).toBe(true);
  expect(part([0, 1], 2, true)).toEqual([]);
  expect(part([0x10, 0], 3, true)).toMatchObject([{ key: true }]);
});

describe('the length of an Opus packet', () => {
  test('follows from its first byte', () => {
    expect(opusSamples(Buffer.from([0xfc, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0x78, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0x08, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0xfd, 0]))).toBe(1920);
    expect(opusSamples(Buffer.from([0xff, 3]))).toBe(2880);
  });

  test('is undefined for what no encoder makes', () => {
    expect(opusSamples(Buffer.alloc(0))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff]))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff, 0]))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff, 63]))).toBeUndefined();
  });
});
