import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { RecordKeys } from './key-schedule.js';
import { DTLS_1_2, type DtlsRecord, RECORD_HEADER } from './records.js';

const CIPHER = 'aes-128-gcm';
const TAG_BYTES = 16;
const EXPLICIT_NONCE_BYTES = 8;

/** Returns one encrypted record of epoch 1 (RFC 5288 section 3); its sequence number makes the nonce unique. */
export function sealRecord(keys: RecordKeys, type: number, sequence: number, plain: Buffer): Buffer {
  const length = EXPLICIT_NONCE_BYTES + plain.length + TAG_BYTES;
  const record = Buffer.alloc(RECORD_HEADER + length);
  record[0] = type;
  record.writeUInt16BE(DTLS_1_2, 1);
  record.writeUInt16BE(1, 3);
  record.writeUIntBE(sequence, 5, 6);
  record.writeUInt16BE(length, 11);
  const explicit = record.subarray(3, 3 + EXPLICIT_NONCE_BYTES);
  explicit.copy(record, RECORD_HEADER);
  const cipher = createCipheriv(CIPHER, keys.key, Buffer.concat([keys.iv, explicit]));
  cipher.setAAD(additionalData(record, plain.length));
  const body = cipher.update(plain);
  cipher.final();
  body.copy(record, RECORD_HEADER + EXPLICIT_NONCE_BYTES);
  cipher.getAuthTag().copy(record, record.length - TAG_BYTES);
  return record;
}

/** Returns the plaintext of an encrypted record; undefined when it is not authentic. */
export function openRecord(keys: RecordKeys, { fragment, whole }: DtlsRecord): Buffer | undefined {
  const plainLength = fragment.length - EXPLICIT_NONCE_BYTES - TAG_BYTES;
  if (plainLength < 0) return undefined;
  const nonce = Buffer.concat([keys.iv, fragment.subarray(0, EXPLICIT_NONCE_BYTES)]);
  const decipher = createDecipheriv(CIPHER, keys.key, nonce, { authTagLength: TAG_BYTES });
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

/** Epoch, number, type and version of the record, and the length of the plaintext (RFC 5246 section 6.2.3.3). */
function additionalData(record: Buffer, plainLength: number): Buffer {
  const data = Buffer.alloc(RECORD_HEADER);
  record.copy(data, 0, 3, 11);
  record.copy(data, 8, 0, 3);
  data.writeUInt16BE(plainLength, 11);
  return data;
}
