import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { OrderedPacket } from '../reorder-buffer.js';
import { RtpView } from '../rtp-view.js';
import { splitAnnexB, toAnnexB } from './annex-b.js';
import { H264, NalType, nalType, packetiseH264 } from './h264.js';
import { type AssembledFrame, EntryPoint } from './payload-format.js';

const view = new RtpView();
const reader = H264.createReader();

function entryPoint(payload: string | Uint8Array): EntryPoint {
  const bytes = typeof payload === 'string' ? Buffer.from(payload.replaceAll(' ', ''), 'hex') : Buffer.from(payload);
  expect(view.parse(Buffer.concat([Buffer.from('806000010000000000000001', 'hex'), bytes]))).toBe(true);
  expect(reader.read(view)).toBe(true);
  return reader.entryPoint;
}

describe('H.264 packet', () => {
  test.each(['67 42e01f', '78 0002 67aa 0002 68bb', '7c 87 00'])(
    '%s has a parameter set, so it is an entry point',
    (payload) => {
      expect(entryPoint(payload)).toBe(EntryPoint.yes);
    },
  );

  test.each(['65 88', '78 0001 09 0002 65bb', '7c 85 00'])('%s is an entry point if it comes first', (payload) => {
    expect(entryPoint(payload)).toBe(EntryPoint.ifFirst);
  });

  test.each([
    '41 9a',
    '68 ce',
    '06 05',
    '78 0002 41aa 0002 68bb',
    '78 0009 65aa',
    '78 0000 0001 65',
    '7c 05 00',
    '7c 45 00',
    '7c 81 00',
    '7c',
    '',
  ])('%s is not an entry point', (payload) => {
    expect(entryPoint(payload)).toBe(EntryPoint.no);
  });

  test.each([
    ['01 9a', 1],
    ['41 9a', 0],
    ['1c 81 9a', 1],
    ['1c 41 9a', 1],
    ['5c 41 9a', 0],
    ['1c', 0],
    ['18 0002 0605 0002 019a', 1],
    ['18 0002 0605', 1],
    ['78 0002 019a 0002 68ce', 0],
    ['18 0009 019a', 0],
    ['18 0000 0001 01', 0],
    ['06 05', 1],
    ['09 f0', 1],
    ['1c 86 05', 1],
    ['0e 80', 1],
    ['6e 80', 0],
    ['18 0002 09f0 0002 0605', 1],
    ['78 0002 09f0 0002 68ce', 0],
    ['18 0002 09f0 0002 65bb', 0],
    ['0c ff', 0],
    ['67 42e01f', 0],
    ['', 0],
  ])(
    '%s is in temporal layer %d: 1 if no other picture refers to its slices, or it has nothing that lasts',
    (payload, layer) => {
      entryPoint(payload);
      expect(reader.temporalLayer).toBe(layer);
    },
  );

  test('shows no layer if it has only what accompanies a picture', () => {
    const shown = ['09 f0', '18 0002 09f0 0002 0605', '18 0002 09f0 0002 019a', '01 9a', '41 9a'].map((payload) => {
      entryPoint(payload);
      return reader.hasPicture;
    });
    expect(shown).toEqual([false, false, true, true, true]);
  });

  describe('with a filler, which keeps the bitrate of its encoder constant', () => {
    const read = (payload: string, timestamp = 1): string => {
      const packet = Buffer.from(`80e000010000000000000001${payload.replaceAll(' ', '')}`, 'hex');
      packet.writeUInt32BE(timestamp, 4);
      expect(view.parse(packet)).toBe(true);
      expect(reader.read(view)).toBe(true);
      return packet.subarray(view.payloadStart, view.payloadEnd).toString('hex');
    };

    test.each(['0c ffffffff 80', '6c ff ff', '0c ffff 8000', '1c 8c ffffff', '1c 0c ffffff', '1c 4c ffff 80', '0c80'])(
      '%s becomes a short one with the marker of its picture',
      (payload) => {
        expect(read(payload)).toBe('0c80');
        expect(view.marker).toBe(true);
        expect([reader.hasPicture, reader.entryPoint]).toEqual([false, EntryPoint.no]);
      },
    );

    test.each(['0c ff12ffff 80', '1c 8c 00ff', '0c 80ff', '0c', '1c 8c', '18 0004 0cffff80', '41 ffffff80', '26 ffff'])(
      '%s stays as it is, because it has other bytes or is none',
      (payload) => {
        expect(read(payload)).toBe(payload.replaceAll(' ', ''));
      },
    );

    test('is in the layer of the slices before it', () => {
      const layers = ['01 9a', '0c ffff80', '1c 4c ff80', '41 9a', '0c ffff80'].map((payload) => {
        read(payload);
        return reader.temporalLayer;
      });
      expect(layers).toEqual([1, 1, 1, 0, 0]);
      read('01 9a', 2);
      read('0c ffff80', 3);
      expect(reader.temporalLayer).toBe(0);
    });
  });

  test('with the marker of its picture stays in the base layer', () => {
    expect(view.parse(Buffer.from('80e00001000000000000000109f0', 'hex'))).toBe(true);
    reader.read(view);
    expect(reader.temporalLayer).toBe(0);
  });

  test('reads garbage without throwing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0x78, 0x7c, 0x65, 0xff), (bytes, first) => {
        if (bytes.length > 0) bytes[0] = first;
        expect(Object.values(EntryPoint)).toContain(entryPoint(bytes));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

describe('parameter sets announced in the SDP', () => {
  const announced = (sets: string) =>
    H264.createAnnouncedParts(`packetization-mode=1; sprop-parameter-sets=${sets};x=1`);
  const base64 = (...sets: string[]): string => sets.map((set) => Buffer.from(set, 'hex').toString('base64')).join();
  const read = (payload: string, timestamp: number): RtpView => {
    const packet = Buffer.from(`806000010000000000000001${payload.replaceAll(' ', '')}`, 'hex');
    packet.writeUInt32BE(timestamp, 4);
    view.parse(packet);
    return view;
  };

  test.each(['65 88', '7c 85 88', '78 0001 09 0002 6588'])('precede the key picture that starts with %s', (payload) => {
    const parts = announced(base64('6742e01f', '68ce3c80'));
    expect(parts?.missingBefore(read(payload, 1))?.toString('hex')).toBe('7800046742e01f000468ce3c80');
    expect(parts?.missingBefore(read(payload, 1))).toBeUndefined();
    expect(parts?.missingBefore(read(payload, 2))).toBeDefined();
  });

  test.each(['65 08', '41 88', '7c 05 88', '7c 85', '65', '67 42e01f', ''])('do not precede %s', (payload) => {
    expect(announced(base64('6742e01f', '68ce3c80'))?.missingBefore(read(payload, 1))).toBeUndefined();
  });

  test.each([
    ['67 42e01f', true],
    ['78 0004 6742e01f 0002 68bb', true],
    ['67 42e020', false],
    ['78 0004 6742e020 0002 68bb', false],
    ['7c 87 42', false],
  ])('parameter sets are superseded by other ones: after %s they are valid: %s', (payload, isValid) => {
    const parts = announced(base64('6742e01f', '68ce3c80'));
    parts?.missingBefore(read(payload, 1));
    expect(parts?.isValid).toBe(isValid);
    expect(parts?.missingBefore(read('65 88', 1))).toBeUndefined();
    expect(parts?.missingBefore(read('65 88', 2)) !== undefined).toBe(isValid);
  });

  test.each([
    '',
    ',',
    '!!',
    base64('6742e01f'),
    base64('68ce3c80'),
    base64('6742e01f', `68${'00'.repeat(600)}`),
    `${base64('6742e01f', '68ce3c80')}${',Zw=='.repeat(300)}`,
  ])('count as missing when they are incomplete or too large: %s', (sets) => {
    expect(announced(sets)).toBeUndefined();
  });

  test('reads parameter sets from any attribute without throwing', () => {
    const text = fc.string({ unit: fc.constantFrom(...'sprop-parameter-sets=Zw,/+; a'), maxLength: 60 });
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 20 }), (attribute, payload) => {
        const packet = read(Buffer.from(payload).toString('hex'), 1);
        announced(attribute)?.missingBefore(packet);
        H264.createAnnouncedParts(attribute)?.missingBefore(packet);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});

/** The first bit after the header is set, so a slice with it starts its picture. */
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

describe('H.264 assembler', () => {
  const typesOf = (frame: AssembledFrame | undefined) => splitAnnexB(frame?.data ?? Buffer.alloc(0)).map(nalType);

  test('reassembles packetised NAL units unchanged, whatever their sizes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 2, max: 700 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 40, max: 1200 }),
        (sizes, maxBytes) => {
          const nals = [sps, pps, ...sizes.map((size, i) => nal(NalType.idr, size, 0x80 | i))];
          const payloads = packetiseH264(nals, maxBytes);
          expect(payloads.every((p) => p.length <= maxBytes)).toBe(true);
          const assembler = H264.createAssembler();
          let frame: AssembledFrame | undefined;
          payloads.forEach((payload, i) => {
            [frame] = assembler.push({ sequence: i, timestamp: 7, marker: i === payloads.length - 1, payload });
          });
          expect(frame?.key).toBe(true);
          expect(frame?.data.equals(toAnnexB(nals))).toBe(true);
        },
      ),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('starts with a key picture and its parameter sets', () => {
    const assembler = H264.createAssembler();
    const run = (list: OrderedPacket[]) => list.flatMap((p) => assembler.push(p)).at(-1);
    expect(run(packets([nal(NalType.slice, 50)], 1, 0))).toBeUndefined();
    expect(assembler.needsKeyframe).toBe(true);
    expect(run(packets([nal(NalType.idr, 50)], 2, 1))).toBeUndefined();
    expect(run(packets([sps, pps], 3, 2))).toBeUndefined();
    expect(typesOf(run(packets([nal(NalType.idr, 250)], 4, 3)))).toEqual([7, 8, 5]);
    expect(assembler.needsKeyframe).toBe(false);
    expect(run(packets([nal(NalType.slice, 50)], 5, 9))).toMatchObject({ key: false, timestamp: 5 });
  });

  test('leaves out delimiters and fillers', () => {
    const assembler = H264.createAssembler();
    const filler = Buffer.concat([Buffer.from([NalType.filler]), Buffer.alloc(300, 0xff)]);
    const nals = [nal(NalType.aud, 2), sps, pps, nal(NalType.idr, 20), filler];
    const [frame] = packets(nals, 1, 0).flatMap((packet) => assembler.push(packet));
    expect(typesOf(frame)).toEqual([7, 8, 5]);
  });

  test('a slice that starts with 0x41 is not a key picture, but parameter sets with an IDR are', () => {
    const assembler = H264.createAssembler();
    const start = packets([sps, pps, nal(NalType.idr, 20)], 1, 0);
    expect(start).toHaveLength(1);
    expect(assembler.push(start[0] as OrderedPacket)[0]?.key).toBe(true);
    const slice = Buffer.from([0x41, 0x85, 0x10]);
    expect(assembler.push({ sequence: 1, timestamp: 2, marker: true, payload: slice })[0]?.key).toBe(false);
  });

  test('returns nothing after a loss until the next key picture', () => {
    const assembler = H264.createAssembler();
    for (const p of packets([sps, pps, nal(NalType.idr, 300)], 1, 0)) assembler.push(p);
    const broken = packets([nal(NalType.slice, 300)], 2, 10);
    assembler.push(broken[0] as OrderedPacket);
    assembler.gap();
    expect(assembler.push(broken[2] as OrderedPacket)).toEqual([]);
    expect(assembler.push(packets([nal(NalType.slice, 50)], 3, 20)[0] as OrderedPacket)).toEqual([]);
    expect(assembler.needsKeyframe).toBe(true);
    const healed = packets([nal(NalType.idr, 50)], 4, 21).flatMap((p) => assembler.push(p));
    expect(healed.at(-1)?.key).toBe(true);
  });

  test('does not accept a key picture whose first slices are lost', () => {
    const assembler = H264.createAssembler();
    const slices = [nal(NalType.idr, 60), nal(NalType.idr, 60, 0x40), nal(NalType.idr, 60, 0x20)];
    const complete = (timestamp: number, nals: readonly Buffer[]) =>
      packets(nals, timestamp, timestamp * 10).flatMap((p) => assembler.push(p));
    expect(typesOf(complete(1, [sps, pps, ...slices]).at(-1))).toHaveLength(5);
    assembler.gap();
    expect(complete(2, slices.slice(1))).toEqual([]);
    expect(assembler.needsKeyframe).toBe(true);
    expect(typesOf(complete(3, slices).at(-1))).toHaveLength(5);
  });

  test('the end of a fragmented NAL unit without its start breaks the picture instead of creating a unit', () => {
    const assembler = H264.createAssembler();
    for (const p of packets([sps, pps, nal(NalType.idr, 20)], 1, 0)) assembler.push(p);
    const parts = packets([nal(NalType.idr, 300)], 2, 5);
    expect(assembler.push(parts.at(-1) as OrderedPacket)).toEqual([]);
  });

  test('keeps nothing of a picture after it has lost a packet', () => {
    const assembler = H264.createAssembler();
    for (const p of packets([sps, pps, nal(NalType.idr, 20)], 1, 0)) assembler.push(p);
    const parts = packets([nal(NalType.slice, 300), nal(NalType.slice, 60)], 2, 10);
    assembler.push({ ...parts[0]!, marker: false });
    expect(assembler.heldBytes).toBeGreaterThan(90);
    assembler.gap();
    for (const p of parts.slice(1)) assembler.push({ ...p, marker: false });
    expect(assembler.heldBytes).toBe(0);
  });

  test('returns both pictures when one packet ends them, the earlier one without a marker', () => {
    const assembler = H264.createAssembler();
    for (const p of packets([sps, pps, nal(NalType.idr, 20)], 1, 0)) assembler.push(p);
    const [unmarked, marked] = [2, 3].flatMap((timestamp) => packets([nal(NalType.slice, 20)], timestamp, timestamp));
    expect(assembler.push({ ...unmarked!, marker: false })).toEqual([]);
    expect(assembler.push(marked!).map(({ timestamp }) => timestamp)).toEqual([2, 3]);
  });

  test('garbage never makes the H.264 assembler throw', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.boolean(), fc.integer({ min: 0, max: 3 }), fc.boolean()),
        ),
        (input) => {
          const assembler = H264.createAssembler();
          for (const [bytes, marker, timestamp, lost] of input) {
            if (lost) assembler.gap();
            assembler.push({ sequence: 0, timestamp, marker, payload: Buffer.from(bytes) });
          }
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

test('packetises an access unit without its delimiter', () => {
  const { payloads } = H264.packetise(toAnnexB([nal(NalType.aud, 2), sps, pps, nal(NalType.slice, 20)]));
  expect(payloads.map((payload) => nalType(payload))).toEqual([NalType.stapA]);
});

describe('H.264 profiles', () => {
  test.each(['42e01f', '42401f', '42f01f', '4d801f', '4de01f', '58c01f'])(
    'accepts profile-level-id %s as constrained baseline, which all receivers can decode',
    (id) => {
      expect(H264.obstacle(`packetization-mode=1;profile-level-id=${id}`)).toBeUndefined();
    },
  );

  test.each(['42001f', '42c11f', '4d001f', '58801f', '64001f', '42e0', ''])(
    'reports profile-level-id %s as an obstacle for some receivers',
    (id) => {
      expect(H264.obstacle(`profile-level-id=${id}`)).toBe(`profile-level-id ${id}`);
    },
  );

  test('does not treat a codec without profile-level-id as constrained baseline', () => {
    expect(H264.obstacle('')).toBe('profile-level-id missing');
  });

  test('reads parameters in any case and spacing', () => {
    expect(H264.obstacle('Packetization-Mode=1; Profile-Level-Id = 42E01F;;')).toBeUndefined();
  });
});
