import { createHash, createHmac, timingSafeEqual, verify, X509Certificate } from 'node:crypto';
import { HANDSHAKE_HEADER } from './handshake-messages.js';

/** `a=fingerprint`: hash function name (RFC 8122 section 5) and hex with colons. */
export interface Fingerprint {
  algorithm: string;
  value: string;
}

const HASHES: Readonly<Record<string, string>> = { 'sha-256': 'sha256', 'sha-384': 'sha384', 'sha-512': 'sha512' };
/** SignatureAndHashAlgorithm (RFC 5246 section 7.4.1.4.1): sha256, sha384, sha512. */
const SIGNATURE_HASHES: Readonly<Record<number, string>> = { 4: 'sha256', 5: 'sha384', 6: 'sha512' };

/** Whether the DER certificate has the fingerprint that was negotiated. Hash functions weaker than SHA-256 never match. */
export function matchesFingerprint(certificate: Buffer, expected: Fingerprint): boolean {
  const hash = HASHES[expected.algorithm.toLowerCase()];
  if (hash === undefined) return false;
  const wanted = Buffer.from(expected.value.replaceAll(':', ''), 'hex');
  const actual = createHash(hash).update(certificate).digest();
  return wanted.length === actual.length && timingSafeEqual(wanted, actual);
}

/**
 * Checks CertificateVerify (RFC 5246 section 7.4.8): that the client holds the key of the certificate it sent. A
 * certificate alone proves nothing, it travels in the clear.
 *
 * @param transcript handshake messages with headers, from the ClientHello with cookie to ClientKeyExchange
 * @param certificateVerify that message with its header
 */
export function holdsCertificateKey(certificate: Buffer, transcript: Buffer, certificateVerify: Buffer): boolean {
  const body = certificateVerify.subarray(HANDSHAKE_HEADER);
  if (body.length < 4) return false;
  const hash = SIGNATURE_HASHES[body[0] ?? 0];
  const length = body.readUInt16BE(2);
  if (hash === undefined || body.length !== 4 + length) return false;
  try {
    const { publicKey } = new X509Certificate(certificate);
    const keyType = body[1] === 3 ? 'ec' : body[1] === 1 ? 'rsa' : undefined;
    if (publicKey.asymmetricKeyType !== keyType) return false;
    return verify(hash, transcript, publicKey, body.subarray(4));
  } catch {
    // Not a certificate, or a key OpenSSL does not know.
    return false;
  }
}

/** Checks the client's Finished (RFC 5246 section 7.4.9): that both sides saw the same handshake. */
export function finishedHolds(masterSecret: Buffer, transcript: Buffer, finished: Buffer): boolean {
  const hash = createHash('sha256').update(transcript).digest();
  const expected = prf(masterSecret, 'client finished', hash, 12);
  const given = finished.subarray(HANDSHAKE_HEADER);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** P_SHA256 (RFC 5246 section 5). */
function prf(secret: Buffer, label: string, seed: Buffer, length: number): Buffer {
  const labelled = Buffer.concat([Buffer.from(label, 'latin1'), seed]);
  const blocks: Buffer[] = [];
  let a: Buffer = labelled;
  for (let have = 0; have < length; have += 32) {
    a = createHmac('sha256', secret).update(a).digest();
    blocks.push(createHmac('sha256', secret).update(a).update(labelled).digest());
  }
  return Buffer.concat(blocks).subarray(0, length);
}

/** Position of a type in a list of messages; used to cut the transcript. */
export function indexOfType(messages: readonly Buffer[], type: number): number {
  return messages.findIndex((message) => message[0] === type);
}
