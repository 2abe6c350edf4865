import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { AssembledFrame, FrameAssembler } from './payload-format.js';
import { VP9 } from './vp9.js';

interface PartOptions {
  /** B and E. */
  start?: boolean;
  end?: boolean;
  /** P is not set. */
  key?: boolean;
  layer?: number;
  marker?: boolean;
}

/** A packet in the non-flexible mode, with a picture id and the byte of its layer. */
function part(timestamp: number, { start, end, key, layer = 0, marker = false }: PartOptions, data: string) {
  const first = 0xa0 | (key === true ? 0 : 0x40) | (start === true ? 8 : 0) | (end === true ? 4 : 0);
  const payload = Buffer.concat([Buffer.of(first, 0x11, layer << 1, 0x01), Buffer.from(data)]);

  return { sequence: 0, timestamp, marker, payload };
}

const whole = { start: true, end: true } as const;
const lone = { ...whole, marker: true } as const;
const keys = (frames: readonly AssembledFrame[]): boolean[] => frames.map(({ key }) => key);

let vp9: FrameAssembler;
const begin = (): void => {
  vp9 = VP9.createAssembler();
  expect(keys(vp9.push(part(0, { ...lone, key: true }, 'k')))).toEqual([true]);
};

describe('the pictures of VP9', () => {
  test('are joined from packets without their descriptors', () => {
    vp9 = VP9.createAssembler();
    expect(vp9.push(part(1, { start: true, key: true }, 'ab'))).toEqual([]);
    expect(vp9.push(part(1, { key: true }, 'cd'))).toEqual([]);
    expect(vp9.heldBytes).toBeGreaterThan(4);
    const frames = vp9.push(part(1, { key: true, end: true, marker: true }, 'ef'));
    expect(frames).toEqual([{ timestamp: 1, key: true, data: Buffer.from('abcdef') }]);
    expect(vp9.heldBytes).toBe(0);
  });

  test('leave out references and the scalability structure', () => {
    vp9 = VP9.createAssembler();
    const send = (timestamp: number, payload: string) =>
      vp9.push({ sequence: 0, timestamp, marker: true, payload: Buffer.from(payload, 'hex') });
    // One layer of 640x360.
    expect(send(1, '8e11100280016861')).toEqual([{ timestamp: 1, key: true, data: Buffer.from('a') }]);
    // Two references.
    expect(send(2, 'dc12030262')).toEqual([{ timestamp: 2, key: false, data: Buffer.from('b') }]);
  });

  test('are superframes if they have several layers', () => {
    vp9 = VP9.createAssembler();
    vp9.push(part(1, { ...whole, key: true }, 'low'));
    const [picture] = vp9.push(part(1, { ...lone, key: true, layer: 1 }, 'higher'));
    expect(picture?.key).toBe(true);
    const index = Buffer.from('d90300000006000000d9', 'hex');
    expect(picture?.data).toEqual(Buffer.concat([Buffer.from('lowhigher'), index]));
  });

  test('start with a key picture, and again after a loss', () => {
    vp9 = VP9.createAssembler();
    expect(vp9.needsKeyframe).toBe(true);
    expect(vp9.push(part(1, lone, 'x'))).toEqual([]);
    // The upper layer of a key picture is not enough.
    expect(vp9.push(part(2, { ...lone, key: true, layer: 1 }, 'x'))).toEqual([]);
    expect(keys(vp9.push(part(3, { ...lone, key: true }, 'x')))).toEqual([true]);
    expect(keys(vp9.push(part(4, lone, 'x')))).toEqual([false]);
    vp9.gap();
    expect(vp9.push(part(5, lone, 'x'))).toEqual([]);
    expect(vp9.needsKeyframe).toBe(true);
    expect(keys(vp9.push(part(6, { ...lone, key: true }, 'x')))).toEqual([true]);
  });

  test.each([
    ['without its start', [{ end: true, marker: true }]],
    ['without its end', [{ start: true, marker: true }]],
    ['with a second start', [{ start: true }, { start: true, end: true, marker: true }]],
  ] as const)('wait for a key picture after one %s', (_what, parts) => {
    begin();
    for (const options of parts) expect(vp9.push(part(1, options, 'x'))).toEqual([]);
    expect(vp9.needsKeyframe).toBe(true);
    expect(vp9.push(part(2, lone, 'x'))).toEqual([]);
    expect(keys(vp9.push(part(3, { ...lone, key: true }, 'x')))).toEqual([true]);
  });

  test('are returned by the next one if the last packet has no marker', () => {
    begin();
    expect(vp9.push(part(1, whole, 'ab'))).toEqual([]);
    const frames = vp9.push(part(2, lone, 'cd'));
    expect(frames.map(({ timestamp }) => timestamp)).toEqual([1, 2]);
  });

  test('are dropped if a packet makes no sense', () => {
    begin();
    vp9.push(part(1, { start: true }, 'ab'));
    expect(vp9.push({ sequence: 0, timestamp: 1, marker: true, payload: Buffer.of(0x80) })).toEqual([]);
    expect(vp9.needsKeyframe).toBe(true);
  });

  test('are unharmed by packets that come after their last one', () => {
    begin();
    expect(vp9.push(part(0, lone, 'again'))).toEqual([]);
    expect(keys(vp9.push(part(1, lone, 'x')))).toEqual([false]);
  });
});

describe('a hostile publisher of VP9', () => {
  test('cannot have a picture in endless tiny parts', () => {
    begin();
    vp9.push(part(1, { start: true }, 'x'));
    let most = 0;
    for (let i = 0; i < 20_000; i += 1) {
      vp9.push(part(1, {}, 'x'));
      most = Math.max(most, vp9.heldBytes);
    }
    expect(vp9.needsKeyframe).toBe(true);
    expect(vp9.heldBytes).toBe(0);
    expect(most).toBeLessThan(16 * 1024 * 1024);
  });

  test('cannot have a picture of more than 8 MiB, or of more than eight layers', () => {
    begin();
    const large = 'x'.repeat(60_000);
    vp9.push(part(1, { start: true }, large));
    for (let i = 0; i < 150; i += 1) vp9.push(part(1, {}, large));
    expect(vp9.heldBytes).toBe(0);
    expect(vp9.push(part(1, { end: true, marker: true }, 'x'))).toEqual([]);
    begin();
    for (let layer = 0; layer < 9; layer += 1) vp9.push(part(1, { ...whole, layer: layer % 8 }, 'x'));
    expect(vp9.push(part(1, lone, 'x'))).toEqual([]);
    expect(vp9.needsKeyframe).toBe(true);
  });

  test('cannot make it throw', () => {
    const packet = fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.boolean(), fc.nat(3), fc.boolean());
    fc.assert(
      fc.property(fc.array(packet), (input) => {
        const assembler = VP9.createAssembler();
        for (const [bytes, marker, timestamp, lost] of input) {
          if (lost) assembler.gap();
          const frames = assembler.push({ sequence: 0, timestamp, marker, payload: Buffer.from(bytes) });
          for (const { data } of frames) expect(data.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
