import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { RecordKeys } from './key-schedule.js';
import { DTLS_1_2, type DtlsRecord, RECORD_HEADER } from './records.js';

const CIPHER = 'aes-128-gcm';
const TAG_BYTES = 16;
const EXPLICIT_NONCE_BYTES = 8;
const IMPLICIT_NONCE_BYTES = 4;

// Reused: records are handled one at a time, and OpenSSL copies both. Filled bytewise, because `copy` allocates.
const nonce = Buffer.alloc(IMPLICIT_NONCE_BYTES + EXPLICIT_NONCE_BYTES);
const associated = Buffer.alloc(RECORD_HEADER);

/** Returns one encrypted record of epoch 1 (RFC 5288 section 3). The sequence number makes its nonce unique. */
export function encryptRecord(keys: RecordKeys, type: number, sequence: number, plain: Buffer): Buffer {
  const length = EXPLICIT_NONCE_BYTES + plain.length + TAG_BYTES;
  const record = Buffer.allocUnsafe(RECORD_HEADER + length);
  record[0] = type;
  record.writeUInt16BE(DTLS_1_2, 1);
  record.writeUInt16BE(1, 3);
  record.writeUIntBE(sequence, 5, 6);
  record.writeUInt16BE(length, 11);
  for (let at = 0; at < EXPLICIT_NONCE_BYTES; at++) record[RECORD_HEADER + at] = record[3 + at]!;
  const cipher = createCipheriv(CIPHER, keys.key, nonceOf(keys, record));
  cipher.setAAD(additionalData(record, plain.length));
  cipher.update(plain).copy(record, RECORD_HEADER + EXPLICIT_NONCE_BYTES);
  cipher.final();
  cipher.getAuthTag().copy(record, record.length - TAG_BYTES);
  return record;
}

/** Returns the plaintext of an encrypted record; undefined if it is not authentic. */
export function decryptRecord(keys: RecordKeys, { fragment, whole }: DtlsRecord): Buffer | undefined {
  const plainLength = fragment.length - EXPLICIT_NONCE_BYTES - TAG_BYTES;
  if (plainLength < 0) return undefined;
  const decipher = createDecipheriv(CIPHER, keys.key, nonceOf(keys, whole), { authTagLength: TAG_BYTES });
  decipher.setAAD(additionalData(whole, plainLength));
  decipher.setAuthTag(fragment.subarray(fragment.length - TAG_BYTES));
  const plain = decipher.update(fragment.subarray(EXPLICIT_NONCE_BYTES, fragment.length - TAG_BYTES));
  try {
    decipher.final();
    return plain;
  } catch {
    return undefined;
  }
}

/** Implicit part of the nonce, then the part sent with the record (RFC 5288 section 3). Valid until the next call. */
function nonceOf(keys: RecordKeys, record: Buffer): Buffer {
  for (let at = 0; at < IMPLICIT_NONCE_BYTES; at++) nonce[at] = keys.iv[at]!;
  for (let at = 0; at < EXPLICIT_NONCE_BYTES; at++) nonce[IMPLICIT_NONCE_BYTES + at] = record[RECORD_HEADER + at]!;
  return nonce;
}

/**
 * Returns epoch, sequence number, type and version of the record, and the plaintext length (RFC 5246 section 6.2.3.3).
 * The result is valid until the next call.
 */
function additionalData(record: Buffer, plainLength: number): Buffer {
  for (let at = 0; at < 8; at++) associated[at] = record[3 + at]!;
  for (let at = 0; at < 3; at++) associated[8 + at] = record[at]!;
  associated.writeUInt16BE(plainLength, 11);
  return associated;
}
