import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { createCertificate, identityOf } from './certificate.js';
import { readDer, Tag } from './der.js';

describe('our certificate', () => {
  test('OpenSSL finds the certificate self-signed and valid, with the announced fingerprint', async () => {
    const certificate = await createCertificate();
    const read = new X509Certificate(certificate.certPem);
    expect(read.verify(read.publicKey)).toBe(true);
    expect(read.checkPrivateKey(identityOf(certificate).key)).toBe(true);
    expect(read.fingerprint256).toBe(certificate.fingerprint.value);
    expect(Date.parse(read.validFrom)).toBeLessThan(Date.now());
    expect(Date.parse(read.validTo)).toBeGreaterThan(Date.now() + 300 * 24 * 3600 * 1000);
    expect(identityOf(certificate).der).toEqual(read.raw);
  });

  test('parses a certificate only once', async () => {
    const certificate = await createCertificate();
    expect(identityOf(certificate)).toBe(identityOf(certificate));
  });
});

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >>> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...bytes), ...parts]);
}

describe('reading DER', () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535])('reads back a value of %i bytes as written', (length) => {
    const content = Buffer.alloc(length, 5);
    const bytes = Buffer.concat([der(Tag.sequence, content), Buffer.of(1, 2)]);
    expect(readDer(bytes)).toEqual({ tag: Tag.sequence, content, whole: bytes.subarray(0, -2), end: bytes.length - 2 });
    expect(readDer(bytes.subarray(0, -3))).toBeUndefined();
  });

  test('never throws on garbage and stays within its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(14), (bytes, at) => {
        const value = readDer(Buffer.from(bytes), at);
        expect(value === undefined || value.end <= bytes.length).toBe(true);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
