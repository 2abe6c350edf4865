import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { authenticated, divide, join, split } from './layout.js';

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
const hex = (data: Uint8Array | undefined) => (data === undefined ? undefined : Buffer.from(data).toString('hex'));
const data = fc.uint8Array({ maxLength: 300 }).map((one) => Uint8Array.from(one));
/** Mostly zeros and small bytes, as start codes are. */
const startCodes = fc
  .array(fc.constantFrom(0, 0, 0, 1, 2, 3, 200), { maxLength: 60 })
  .map((one) => Uint8Array.from(one));

describe('A frame', () => {
  test.each([
    ['an Opus packet', 'audio', 'fc 01 02', 'fc'],
    ['a VP8 key frame', 'video', '10 00 00 9d 01 2a 40 01 f0 00 aa bb', '10 00 00 9d 01 2a 40 01 f0 00'],
    ['a VP8 interframe', 'video', '11 00 00 aa bb', '11 00 00'],
    [
      'an H.264 picture with parameter sets',
      'video',
      '00 00 00 01 67 42 00 00 00 01 68 ce 00 00 01 65 88 84 00 10 ff ee',
      '00 00 00 01 67 42 00 00 00 01 68 ce 00 00 01 65 88 84 00 10',
    ],
    ['H.264 parameter sets alone', 'video', '00 00 00 01 67 42 00 1f', '00 00 00 01 67 42 00 1f'],
  ] as const)('stays clear where browsers read it: %s', (...[, kind, frame, clear]) => {
    expect(hex(divide(bytes(frame), kind).clear)).toBe(hex(bytes(clear)));
  });

  test.each([
    ['a slice of H.265', '00 00 00 01 02 01 d0 00 aa bb cc', '00 00 00 01 02'],
    ['a filler unit', '00 00 00 01 6c aa bb cc', '00 00 00 01 6c'],
  ])('is sealed from the first unit on that no H.264 picture begins with: %s', (_name, frame, clear) => {
    expect(hex(divide(bytes(frame), 'video').clear)).toBe(hex(bytes(clear)));
  });

  test.each([
    ['a slice', '00 00 00 01 65 aa bb cc dd ee ff', '00 00 01 65 88 84 00 10'],
    ['a unit of another codec', '00 00 00 01 02 01 d0 00 aa', '00 00 01 65 88 84 00 10'],
    ['a slice without a start code', '65 aa bb', ''],
  ])('is not split if somebody put %s in front', (_what, added, own) => {
    const joined = join({ clear: bytes(added + own), body: bytes('aa bb'), escaped: true });
    expect(split(joined!)).toBeUndefined();
  });

  test('is complete in its two parts', () => {
    fc.assert(
      fc.property(fc.oneof(data, startCodes), fc.constantFrom('audio' as const, 'video' as const), (frame, kind) => {
        const { clear, body } = divide(frame, kind);
        expect(hex(clear) + hex(body)!).toBe(hex(frame));
      }),
    );
  });

  test('is split as it was joined', () => {
    fc.assert(
      fc.property(fc.oneof(data, startCodes), fc.oneof(data, startCodes), fc.boolean(), (rest, body, escaped) => {
        const clear = escaped ? bytes('00 00 01 65 88 84 00 00') : rest;
        expect(split(join({ clear, body, escaped })!)).toEqual({ clear, body, escaped });
      }),
    );
  });

  test('has no start code in the sealed part of H.264', () => {
    fc.assert(
      fc.property(fc.oneof(data, startCodes), (body) => {
        const clear = bytes('65 88 84 00 00');
        expect(hex(join({ clear, body, escaped: true })!.subarray(3))).not.toMatch(/^(..)*?0000(00|01|02)/);
      }),
    );
  });

  test('that nobody sealed is not split, whatever its bytes are', () => {
    fc.assert(
      fc.property(data, (frame) => {
        const parts = split(frame);
        if (parts === undefined) return;
        expect(parts.clear.length).toBeLessThanOrEqual(frame.length - 4);
      }),
    );
    expect(split(bytes(''))).toBeUndefined();
    expect(split(bytes('80 80 81 80'))).toBeUndefined();
  });

  test('of more than 2 MiB is not joined', () => {
    expect(join({ clear: bytes(''), body: new Uint8Array(2 ** 21), escaped: false })).toBeUndefined();
  });

  test('has its clear bytes authenticated, but not the parameter sets that browsers rewrite', () => {
    const picture = divide(bytes('00 00 00 01 67 42 00 00 00 01 65 88 84 00 10 ff'), 'video');
    expect(hex(authenticated(picture))).toBe('6588840010');
    const packet = divide(bytes('fc 01'), 'audio');
    expect(hex(authenticated(packet))).toBe('fc');
  });
});
