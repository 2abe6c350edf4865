import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createCertificate, identityOf } from './certificate.js';
import { der, readDer, Tag } from './der.js';

describe('our certificate', () => {
  test('is one to OpenSSL: signed by its own key, valid, with the fingerprint that is announced', async () => {
    const certificate = await createCertificate();
    const read = new X509Certificate(certificate.certPem);
    expect(read.verify(read.publicKey)).toBe(true);
    expect(read.checkPrivateKey(identityOf(certificate).key)).toBe(true);
    expect(read.fingerprint256).toBe(certificate.fingerprint.value);
    expect([read.subject, read.issuer]).toEqual(['CN=bloom', 'CN=bloom']);
    expect(Date.parse(read.validFrom)).toBeLessThan(Date.now());
    expect(Date.parse(read.validTo)).toBeGreaterThan(Date.now() + 3_000 * 24 * 3600 * 1000);
    expect(identityOf(certificate).der).toEqual(read.raw);
  });

  test('made in the forties ends in the fifties', async () => {
    const { certPem } = await createCertificate(new Date('2045-06-01T00:00:00Z'));
    const { validFrom, validTo } = new X509Certificate(certPem);
    expect([new Date(validFrom).getUTCFullYear(), new Date(validTo).getUTCFullYear()]).toEqual([2045, 2055]);
  });

  test('is read once', async () => {
    const certificate = await createCertificate();
    expect(identityOf(certificate)).toBe(identityOf(certificate));
  });
});

describe('DER', () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535])('of %i bytes is read as it was written', (length) => {
    const content = Buffer.alloc(length, 5);
    const bytes = Buffer.concat([der(Tag.sequence, content), Buffer.of(1, 2)]);
    expect(readDer(bytes)).toEqual({ tag: Tag.sequence, content, whole: bytes.subarray(0, -2), end: bytes.length - 2 });
    expect(readDer(bytes.subarray(0, -3))).toBeUndefined();
  });

  test('of garbage never throws and stays within its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(14), (bytes, at) => {
        const value = readDer(Buffer.from(bytes), at);
        expect(value === undefined || value.end <= bytes.length).toBe(true);
      }),
      { numRuns: 10_000 },
    );
  });
});
