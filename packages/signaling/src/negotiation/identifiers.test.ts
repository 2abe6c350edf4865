import { describe, expect, test } from '@jest/globals';
import { chooser } from '../testing/lanes.js';
import { Identifiers } from './identifiers.js';

const choose = chooser(7);
const random = (n: number) => Uint8Array.from({ length: n }, () => choose(256));

describe('random identifiers', () => {
  test('ICE credentials have the length and characters that the standard requires, and never repeat', () => {
    const identifiers = new Identifiers(random);
    const all = Array.from({ length: 100 }, () => identifiers.iceCredentials());
    for (const { ufrag, pwd } of all) {
      expect(ufrag).toMatch(/^[A-Za-z0-9+/]{8}$/);
      expect(pwd).toMatch(/^[A-Za-z0-9+/]{24}$/);
    }
    expect(new Set(all.map(({ ufrag }) => ufrag)).size).toBe(100);
  });

  test('a session id is a positive number that JavaScript represents exactly', () => {
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
