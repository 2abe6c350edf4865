import { createCipheriv } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { AesCounter, BATCH_BYTES } from './aes-counter.js';
import { deriveSessionKeys } from './key-derivation.js';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('session keys', () => {
  test('derives the session keys of RFC 3711 appendix B.3', () => {
    const keys = deriveSessionKeys(
      { masterKey: hex('E1F97A0D3E018BE0D64FA32C06DE4139'), masterSalt: hex('0EC675AD498AFEEBB6960B3AABE6') },
      'rtp',
    );
    expect(keys.cipherKey).toEqual(hex('C61E7A93744F39EE10734AFE3FF7A087'));
    expect(keys.salt).toEqual(hex('30CBBC08863D8C85D49DB34A9AE1'));
    expect(keys.authKey).toEqual(hex('CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4'));
  });

  test('derives RTCP keys that differ from the RTP keys in every part', () => {
    const master = { masterKey: Buffer.alloc(16, 1), masterSalt: Buffer.alloc(14, 2) };
    const rtp = deriveSessionKeys(master, 'rtp');
    const rtcp = deriveSessionKeys(master, 'rtcp');
    expect(rtcp.cipherKey).not.toEqual(rtp.cipherKey);
    expect(rtcp.salt).not.toEqual(rtp.salt);
    expect(rtcp.authKey).not.toEqual(rtp.authKey);
  });

  test('refuses a key or salt of another length', () => {
    expect(() => deriveSessionKeys({ masterKey: Buffer.alloc(32), masterSalt: Buffer.alloc(14) }, 'rtp')).toThrow(
      expect.objectContaining({ code: 'BAD_KEY' }),
    );
    expect(() => deriveSessionKeys({ masterKey: Buffer.alloc(16), masterSalt: Buffer.alloc(12) }, 'rtp')).toThrow(
      'got 16 and 12',
    );
  });
});

describe('the keystream', () => {
  const key = hex('2B7E151628AED2A6ABF7158809CF4F3C');
  const salt = hex('F0F1F2F3F4F5F6F7F8F9FAFBFCFD');

  test('generates the keystream of RFC 3711 appendix B.2', () => {
    const stream = new AesCounter(key, salt).keystream(0, 0, 1, 48);
    expect(stream).toEqual(
      hex('E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0'),
    );
  });

  test('matches the system cipher at each index of several packets, across the roll-over and beyond 256 blocks', () => {
    const counter = new AesCounter(key, salt);
    for (const [first, packets, bytes] of [
      [65_534, 4, 1200],
      [7 * 65_536 + 65_535, 2, 4112],
      [4_294_967_295 * 65_536 + 65_534, 2, 32],
      [3, 1, BATCH_BYTES],
    ] as const) {
      const ssrc = 0xdeadbeef;
      const stream = counter.keystream(ssrc, first, packets, bytes);
      for (let i = 0; i < packets; i += 1) {
        const index = BigInt(first + i);
        const iv = (BigInt(`0x${salt.toString('hex')}`) << 16n) ^ (BigInt(ssrc) << 64n) ^ (index << 16n);
        const block = hex(iv.toString(16).padStart(32, '0'));
        const expected = createCipheriv('aes-128-ctr', key, block).update(Buffer.alloc(bytes));
        expect(stream.subarray(i * bytes, (i + 1) * bytes).equals(expected)).toBe(true);
      }
    }
  });
});
