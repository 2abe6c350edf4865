import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { readClientHello } from './client-hello.js';
import { u16, u8, vector } from './wire.js';

const random = Buffer.alloc(32, 7);

function hello(extensions: readonly (readonly [number, Buffer])[], suites = u16(0xc02b)): Buffer {
  const list = extensions.map(([type, data]) => Buffer.concat([u16(type), vector(2, data)]));
  return Buffer.concat([
    u16(0xfefd),
    random,
    vector(1),
    vector(1),
    vector(2, suites),
    vector(1, u8(0)),
    vector(2, ...list),
  ]);
}

describe('reading a ClientHello', () => {
  test('reads a ClientHello with everything it offers', () => {
    const body = hello([
      [10, vector(2, u16(29, 23))],
      [11, vector(1, u8(0))],
      [13, vector(2, u16(0x0403))],
      [14, Buffer.concat([vector(2, u16(7, 1)), vector(1)])],
      [23, Buffer.alloc(0)],
      [43, vector(1, u16(0xfefc, 0xfefd))],
    ]);
    expect(readClientHello(body)).toEqual({
      version: 0xfefd,
      random,
      cipherSuites: [0xc02b],
      compressionMethods: [0],
      groups: [29, 23],
      signatureAlgorithms: [0x0403],
      srtpProfiles: [7, 1],
      supportedVersions: [0xfefc, 0xfefd],
      extendedMasterSecret: true,
      secureRenegotiation: false,
      pointFormats: [0],
    });
  });

  test('accepts a ClientHello without extensions', () => {
    const body = Buffer.concat([
      u16(0xfefd),
      random,
      vector(1),
      vector(1),
      vector(2, u16(0xc02b, 0xff)),
      vector(1, u8(0)),
    ]);
    expect(readClientHello(body)).toMatchObject({
      groups: undefined,
      srtpProfiles: undefined,
      secureRenegotiation: true,
    });
  });

  test('refuses a ClientHello with two extensions of the same type', () => {
    const groups = [10, vector(2, u16(29))] as const;
    expect(readClientHello(hello([groups]))).toBeDefined();
    expect(readClientHello(hello([groups, groups]))).toBeUndefined();
  });

  test('refuses a ClientHello that renegotiates', () => {
    expect(readClientHello(hello([[0xff01, vector(1)]]))).toMatchObject({ secureRenegotiation: true });
    expect(readClientHello(hello([[0xff01, vector(1, Buffer.alloc(12))]]))).toBeUndefined();
  });

  test('refuses a ClientHello that is truncated or has trailing bytes', () => {
    const body = hello([[10, vector(2, u16(29))]]);
    const withoutExtensions = body.length - 10;
    for (let length = 0; length < body.length; length++) {
      if (length !== withoutExtensions) expect(readClientHello(body.subarray(0, length))).toBeUndefined();
    }
    expect(readClientHello(Buffer.concat([body, u8(0)]))).toBeUndefined();
  });

  test('never throws on garbage', () => {
    const whole = hello([
      [10, vector(2, u16(29, 23))],
      [14, vector(2, u16(1))],
    ]);
    const changed = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }).map((changes) => {
      const copy = Buffer.from(whole);
      for (const [at, value] of changes) copy[at] = value;
      return copy;
    });
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 90 }).map((each) => Buffer.from(each)),
      changed,
    );
    fc.assert(
      fc.property(bytes, (body) => {
        const read = readClientHello(body);
        expect(read === undefined || read.random.length === 32).toBe(true);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
