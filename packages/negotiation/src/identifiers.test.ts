import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Identifiers } from './identifiers.js';

let drawn = 0;
/** Hashes of a counter: looks random, and is the same in each run. */
const random = (n: number) => createHash('sha256').update(String(drawn++)).digest().subarray(0, n);

describe('generates ICE credentials of the required length and characters that never repeat', () => {
  test('generates a session id that is a positive number JavaScript represents exactly', () => {
    const identifiers = new Identifiers(random);
    const all = Array.from({ length: 100 }, () => identifiers.iceCredentials());
    for (const { ufrag, pwd } of all) {
      expect(ufrag).toMatch(/^[A-Za-z0-9+/]{8}$/);
      expect(pwd).toMatch(/^[A-Za-z0-9+/]{24}$/);
    }
    expect(new Set(all.map(({ ufrag }) => ufrag)).size).toBe(100);
  });

  test('never generates an SSRC that is 0, taken or repeated, whatever the randomness', () => {
    for (const byte of [0, 0x7f, 0xff]) {
      const id = new Identifiers((n) => new Uint8Array(n).fill(byte)).sessionId();
      expect(id).toMatch(/^[1-9]\d*$/);
      expect(BigInt(Number(id))).toBe(BigInt(id));
    }
  });

  test('SSRCs are never 0, never taken and never repeated, whatever the randomness', () => {
    const identifiers = new Identifiers((n) => new Uint8Array(n).fill(0));
    expect([1, 2, 3].map(() => identifiers.ssrc(new Set([2])))).toEqual([1, 3, 4]);
    expect(new Identifiers((n) => new Uint8Array(n).fill(0xff)).ssrc(new Set([0xffff_ffff]))).toBe(1);
  });
});
