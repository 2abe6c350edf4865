import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { addressBytes, addressText, networkOf } from './address.js';

describe('addresses', () => {
  test.each([
    ['127.0.0.1', [127, 0, 0, 1]],
    ['::ffff:10.0.0.7', [10, 0, 0, 7]],
    ['::1', [...Array.from({ length: 15 }, () => 0), 1]],
    ['fe80::1%eth0', [0xfe, 0x80, ...Array.from({ length: 13 }, () => 0), 1]],
  ])('returns the bytes of %s', (text, bytes) => {
    expect([...(addressBytes(text) ?? [])]).toEqual(bytes);
  });

  test('returns no bytes for text that is not an address', () => {
    expect(addressBytes('example.org')).toBeUndefined();
    expect(addressBytes('')).toBeUndefined();
    expect(addressBytes('1.2.3')).toBeUndefined();
  });

  test('round-trips every IPv6 address through text', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const bytes = addressBytes(text);
        expect(bytes).toBeDefined();
        if (bytes?.length === 16) expect(addressBytes(addressText(bytes))).toEqual(bytes);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});

describe('networks', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:0:0:0:0'],
    ['2001:0DB8:1:2::6', '2001:db8:1:2:0:0:0:0'],
    ['2001:db8::6', '2001:db8:0:0:0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:0'],
    ['unknown', 'unknown'],
  ])('puts %s into network %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  test('puts two IPv6 addresses into one network exactly if their first 64 bits match', () => {
    const half = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(fc.tuple(half, half, half, half), ([a, b, c, d]) => {
        const text = (left: number[], right: number[]) => [...left, ...right].map((n) => n.toString(16)).join(':');
        fc.pre(![a, b].some((left) => left.every((group) => group === 0)));
        expect(networkOf(text(a, c))).toBe(networkOf(text(a, d)));
        expect(networkOf(text(a, c)) === networkOf(text(b, c))).toBe(`${a}` === `${b}`);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('returns a network for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:.%]{0,48}$/)), (text) => {
        expect(typeof networkOf(text)).toBe('string');
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });
});
