import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpView } from '../rtp-view.js';
import { AV1 } from './av1.js';
import { DependencyDescriptors } from './dependency-descriptor.js';

/** The first descriptor of Chromium 156 in the mode L2T3_KEY. */
const KEY = 'c00001800514853aaaa8018004004002a02a0060010015d34514174d144c7008743216511185432768077804300ef80868';

interface Seen {
  spatial: number;
  temporal: number;
  switchesTo: number;
  endsFrame: boolean;
}

/** Returns what follows the mandatory fields of `KEY`, with another id of the first template. */
function shiftedBy(firstId: number): string {
  const extended = Buffer.from(KEY, 'hex').subarray(3);
  // Five flags, then the id in six bits.
  extended.writeUInt16BE((extended.readUInt16BE() & ~0x07e0) | (firstId << 5));
  return extended.toString('hex');
}

/** Reads a descriptor, which lies between other bytes. Returns undefined if it is malformed. */
function read(descriptors: DependencyDescriptors, hex: string): Seen | undefined {
  const buffer = Buffer.from(`ff${hex}ff`, 'hex');
  if (!descriptors.read(buffer, 1, buffer.length - 2)) return undefined;
  return { ...descriptors.frame, endsFrame: descriptors.endsFrame };
}

describe('the dependency descriptor', () => {
  test("tells the layers of Chromium's frames, and where a receiver may begin with more pictures", () => {
    const descriptors = new DependencyDescriptors(13);
    const frames = [KEY, 'c50002', 'c30005', 'c80006', 'c20007', '07000a', 'c1000b', 'c6000c'];
    expect(frames.map((hex) => read(descriptors, hex))).toEqual([
      { spatial: 0, temporal: 0, switchesTo: 2, endsFrame: true },
      { spatial: 1, temporal: 0, switchesTo: 2, endsFrame: true },
      { spatial: 0, temporal: 2, switchesTo: -1, endsFrame: true },
      { spatial: 1, temporal: 2, switchesTo: -1, endsFrame: true },
      { spatial: 0, temporal: 1, switchesTo: -1, endsFrame: true },
      { spatial: 1, temporal: 1, switchesTo: -1, endsFrame: false },
      { spatial: 0, temporal: 0, switchesTo: 2, endsFrame: true },
      { spatial: 1, temporal: 0, switchesTo: 2, endsFrame: true },
    ]);
  });

  test('counts frames as ones of the base layer until their templates are known', () => {
    const descriptors = new DependencyDescriptors(13);
    const base = { spatial: 0, temporal: 0, switchesTo: -1, endsFrame: true };
    expect(read(descriptors, 'c80006')).toEqual(base);
    read(descriptors, KEY);
    expect(read(descriptors, 'c80006')).toMatchObject({ spatial: 1, temporal: 2 });
    expect(read(descriptors, 'df0006')).toEqual(base);
  });

  test('is refused wherever it is cut off, and the templates stay', () => {
    const descriptors = new DependencyDescriptors(13);
    expect(read(descriptors, KEY)).toBeDefined();
    // Three bytes are complete; the last byte is the second half of a height.
    for (let bytes = 0; bytes < KEY.length / 2; bytes += 1) {
      const later = KEY.replace('c00001', 'c00002').slice(0, bytes * 2);
      if (bytes !== 3) expect(read(descriptors, later)).toBeUndefined();
    }
    expect(read(descriptors, 'c80006')).toMatchObject({ spatial: 1, temporal: 2 });
  });

  test('is refused with more layers than there are, or with endless templates', () => {
    const descriptors = new DependencyDescriptors(13);
    const filled = (byte: string): string => `c0000180${byte.repeat(200)}`;
    // After the ids come pairs of bits: 1 is another temporal layer, 2 another spatial one, 0 another template.
    for (const byte of ['00', '55', 'aa']) expect(read(descriptors, filled(byte))).toBeUndefined();
  });

  test('keeps the newest templates when an earlier key frame comes again, late or with all that followed it', () => {
    const descriptors = new DependencyDescriptors(13);
    // The next structure begins with the template id 20.
    const next = `d40010${shiftedBy(20)}`;
    read(descriptors, KEY);
    read(descriptors, next);
    const later = { spatial: 1, temporal: 2, switchesTo: -1, endsFrame: true };
    expect(read(descriptors, 'dc0016')).toEqual(later);
    const base = { spatial: 0, temporal: 0, switchesTo: -1, endsFrame: true };
    expect([read(descriptors, KEY), read(descriptors, 'c80006')]).toEqual([base, base]);
    expect(read(descriptors, next)).toMatchObject({ spatial: 0, temporal: 0, switchesTo: 2 });
    expect(read(descriptors, 'dc0016')).toEqual(later);
  });

  test('takes the templates of a sender that begins again with lower numbers, and over the end of the numbers', () => {
    const descriptors = new DependencyDescriptors(13);
    read(descriptors, KEY.replace('c00001', 'c0fff0'));
    read(descriptors, `d40002${shiftedBy(20)}`);
    expect(read(descriptors, 'dc0006')).toMatchObject({ spatial: 1, temporal: 2 });
    read(descriptors, KEY.replace('c00001', 'c0c000'));
    expect(read(descriptors, 'c8c006')).toMatchObject({ spatial: 1, temporal: 2 });
  });

  test('is refused with more templates and decode targets than there are modes for', () => {
    const descriptors = new DependencyDescriptors(13);
    /** Returns a descriptor whose templates are all of the base layer and of no target. */
    const crafted = (templates: number, targets: number): string => {
      const ids = (targets - 1).toString(2).padStart(5, '0');
      const bits = `10000000000${ids}${'00'.repeat(templates - 1)}11`.padEnd(8 * 238, '0');
      return `c00001${Buffer.from(bits.match(/.{8}/g)!.map((byte) => parseInt(byte, 2))).toString('hex')}`;
    };
    expect(read(descriptors, crafted(28, 32))).toBeUndefined();
    expect(read(descriptors, crafted(16, 16))).toBeDefined();
  });

  test('is read only within its bytes, whatever they are', () => {
    const descriptors = new DependencyDescriptors(13);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 255 }), fc.uint8Array({ maxLength: 8 }), (bytes, after) => {
        const start = Buffer.from(bytes);
        if (start.length > 3) start[3]! |= 0x80;
        const isRead = descriptors.read(start, 0, start.length);
        const { frame } = descriptors;
        expect(descriptors.read(Buffer.concat([start, after]), 0, start.length)).toBe(isRead);
        expect(descriptors.frame).toEqual(frame);
        expect(frame.spatial).toBeLessThanOrEqual(3);
        expect(frame.temporal).toBeLessThanOrEqual(7);
        expect(frame.switchesTo).toBeLessThanOrEqual(7);
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });
});

test('a packet of AV1 has the layers of its descriptor, and is refused with a malformed one', () => {
  const view = new RtpView();
  const reader = AV1.createReader(new DependencyDescriptors(13));
  /** Puts the descriptor into a packet, in the two-byte form. */
  const reads = (descriptor: string): boolean => {
    const element = Buffer.concat([Buffer.from([13, descriptor.length / 2]), Buffer.from(descriptor, 'hex')]);
    const elements = Buffer.concat([element, Buffer.alloc(-element.length & 3)]);
    const head = Buffer.from('9060000100000000000000011000', 'hex');
    const length = Buffer.from([0, elements.length / 4]);
    expect(view.parse(Buffer.concat([head, length, elements, Buffer.from('100a0b', 'hex')]))).toBe(true);
    return reader.read(view);
  };
  expect(reads(KEY)).toBe(true);
  expect(reads('c80006')).toBe(true);
  expect(reader).toMatchObject({ spatialLayer: 1, temporalLayer: 2, endsLayer: true, switchesTo: -1 });
  expect(reads('c8')).toBe(false);
  expect(reader.spatialLayer).toBe(1);
  expect(view.parse(Buffer.from('806000010000000000000001100a0b', 'hex')) && reader.read(view)).toBe(true);
  expect(reader).toMatchObject({ spatialLayer: 0, temporalLayer: 0, endsLayer: false, switchesTo: -1 });
});
