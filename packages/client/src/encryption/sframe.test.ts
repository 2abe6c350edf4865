import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeHeader, deriveKeys, encodeHeader, importSecret, open, seal } from './sframe.js';

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const hex = (data: Uint8Array) => Buffer.from(data).toString('hex');

describe('A frame sealed as in RFC 9605, appendix C.3', () => {
  const keyId = bytes('0123');
  const counter = 0x4567;
  const metadata = bytes('4945544620534672616d65205747');
  const plain = bytes('64726166742d696574662d736672616d652d656e63');
  const sealed = bytes('9901234567b7412c2513a1b66dbb48841bbaf17f598751176ad847681a69c6d0b091c07018ce4adb34eb');
  const keys = async () => deriveKeys(await importSecret(bytes('000102030405060708090a0b0c0d0e0f')), keyId);

  test('has the bytes of the appendix', async () => {
    expect(hex(await seal(await keys(), { keyId, counter, metadata }, plain))).toBe(hex(sealed));
  });

  test('opens again', async () => {
    const header = decodeHeader(sealed);
    expect(header).toEqual({ keyId, counter, bytes: 5 });
    expect(hex(await open(await keys(), { header: header!, metadata }, sealed))).toBe(hex(plain));
  });

  test('does not open if its metadata has changed', async () => {
    const header = decodeHeader(sealed)!;
    const refused = open(await keys(), { header, metadata: bytes('00') }, sealed);
    await expect(refused).rejects.toMatchObject({ name: 'OperationError' });
  });
});

describe('The header of a sealed frame', () => {
  test.each([
    [{ keyId: '00', counter: 0 }, '00'],
    [{ keyId: '07', counter: 7 }, '77'],
    [{ keyId: '08', counter: 7 }, '8708'],
    [{ keyId: '01', counter: 0xff }, '18ff'],
    [{ keyId: 'ffffffffffffffff', counter: 0x100 }, 'f9ffffffffffffffff0100'],
  ])('is encoded in the fewest bytes: %j', ({ keyId, counter }, expected) => {
    expect(hex(encodeHeader(bytes(keyId), counter))).toBe(expected);
  });

  test('is decoded as it was encoded', () => {
    const keyIds = fc.uint8Array({ minLength: 1, maxLength: 8 }).filter((one) => one.length === 1 || (one[0] ?? 0) > 0);
    fc.assert(
      fc.property(keyIds, fc.nat({ max: Number.MAX_SAFE_INTEGER }), (keyId, counter) => {
        const encoded = encodeHeader(Uint8Array.from(keyId), counter);
        expect(decodeHeader(encoded)).toEqual({ keyId: Uint8Array.from(keyId), counter, bytes: encoded.length });
      }),
    );
  });

  test.each(['', '8f', '98ff', 'f9ffffffff', '0f20000000000000'])('is not decoded if it is cut off: %s', (data) => {
    expect(decodeHeader(bytes(data))).toBeUndefined();
  });

  test('is not decoded if its counter exceeds 2^53', () => {
    expect(decodeHeader(bytes('0fffffffffffffffff'))).toBeUndefined();
  });
});
