import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpView } from '../rtp-view.js';
import { isH264KeyFrame } from './h264.js';

const view = new RtpView();

function isKey(payload: string | Uint8Array): boolean {
  const bytes = typeof payload === 'string' ? Buffer.from(payload.replaceAll(' ', ''), 'hex') : Buffer.from(payload);
  expect(view.parse(Buffer.concat([Buffer.from('806000010000000000000001', 'hex'), bytes]))).toBe(true);
  return isH264KeyFrame(view);
}

describe('an H.264 packet starts a key frame', () => {
  test('as an IDR slice or a sequence parameter set of its own', () => {
    expect([isKey('65 88'), isKey('67 42e01f'), isKey('41 9a'), isKey('68 ce'), isKey('06 05')]).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  test('when one of them is anywhere in a STAP-A', () => {
    expect(isKey('78 0002 67aa 0002 68bb')).toBe(true);
    expect(isKey('78 0001 09 0002 65bb')).toBe(true);
    expect(isKey('78 0002 41aa 0002 68bb')).toBe(false);
    expect(isKey('78 0009 65aa')).toBe(false);
    expect(isKey('78 0000 0001 65')).toBe(false);
  });

  test('as the first fragment of an FU-A, not as a later one', () => {
    expect([
      isKey('7c 85 00'),
      isKey('7c 87 00'),
      isKey('7c 05 00'),
      isKey('7c 45 00'),
      isKey('7c 81 00'),
      isKey('7c'),
    ]).toEqual([true, true, false, false, false, false]);
  });

  test('not when it is empty', () => {
    expect(isKey('')).toBe(false);
  });

  test('or not, but garbage never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0x78, 0x7c, 0x65, 0xff), (bytes, first) => {
        if (bytes.length > 0) bytes[0] = first;
        expect(typeof isKey(bytes)).toBe('boolean');
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
