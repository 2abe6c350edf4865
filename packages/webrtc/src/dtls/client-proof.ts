import { createHash, createPublicKey, type KeyObject, timingSafeEqual, verify, X509Certificate } from 'node:crypto';
import { readDer, Tag } from './der.js';

/** The value of `a=fingerprint`: a hash function name (RFC 8122 section 5) and hex with colons. */
export interface Fingerprint {
  algorithm: string;
  value: string;
}

const HASHES: Readonly<Record<string, string>> = { 'sha-256': 'sha256', 'sha-384': 'sha384', 'sha-512': 'sha512' };
/** Hash of a SignatureAndHashAlgorithm (RFC 5246 section 7.4.1.4.1): sha256, sha384, sha512. */
const SIGNATURE_HASHES: Readonly<Record<number, string>> = { 4: 'sha256', 5: 'sha384', 6: 'sha512' };
/** SubjectPublicKeyInfo of a P-256 key, up to the two 32-byte coordinates (RFC 5480 section 2). */
const P256_PREFIX = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex');
const COORDINATE = 32;

/** Returns true if the DER certificate has the negotiated fingerprint. Hashes weaker than SHA-256 never match. */
export function matchesFingerprint(certificate: Buffer, expected: Fingerprint): boolean {
  const hash = HASHES[expected.algorithm.toLowerCase()];
  if (hash === undefined) return false;
  const wanted = Buffer.from(expected.value.replaceAll(':', ''), 'hex');
  const actual = createHash(hash).update(certificate).digest();
  return wanted.length === actual.length && timingSafeEqual(wanted, actual);
}

/**
 * Returns true if data was signed with the key of a certificate, which proves nothing by itself: it is sent in the
 * clear.
 *
 * @param signature algorithm, length and bytes of the signature (RFC 5246 section 4.7)
 */
export function isSignedBy(certificate: Buffer, data: Buffer, signature: Buffer): boolean {
  if (signature.length < 4) return false;
  const hash = SIGNATURE_HASHES[signature[0] ?? 0];
  const length = signature.readUInt16BE(2);
  if (hash === undefined || signature.length !== 4 + length) return false;
  try {
    const publicKey = certificateKey(certificate);
    const keyType = signature[1] === 3 ? 'ec' : signature[1] === 1 ? 'rsa' : undefined;
    if (publicKey.asymmetricKeyType !== keyType) return false;
    return verify(hash, data, publicKey, signature.subarray(4));
  } catch {
    // The certificate is invalid, or OpenSSL does not support its key.
    return false;
  }
}

/**
 * Returns the certificate's key. Parses P-256 keys, used by nearly all clients, without OpenSSL, which takes 0.3 ms.
 */
function certificateKey(certificate: Buffer): KeyObject {
  const info = publicKeyInfo(certificate);
  if (
    info?.length !== P256_PREFIX.length + 2 * COORDINATE ||
    !info.subarray(0, P256_PREFIX.length).equals(P256_PREFIX)
  ) {
    return new X509Certificate(certificate).publicKey;
  }
  const at = P256_PREFIX.length;
  const x = info.toString('base64url', at, at + COORDINATE);
  const y = info.toString('base64url', at + COORDINATE);
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
}

/** SubjectPublicKeyInfo (RFC 5280 section 4.1): follows version, serial, signature, issuer, validity and subject. */
function publicKeyInfo(certificate: Buffer): Buffer | undefined {
  const outer = readDer(certificate);
  const body = outer && readDer(outer.content);
  if (outer?.tag !== Tag.sequence || body?.tag !== Tag.sequence) return undefined;
  let value = readDer(body.content);
  for (const tag of [Tag.context0, Tag.integer, Tag.sequence, Tag.sequence, Tag.sequence, Tag.sequence]) {
    if (value?.tag !== tag) return undefined;
    value = readDer(body.content, value.end);
  }
  return value?.tag === Tag.sequence ? value.whole : undefined;
}
