import { createCipheriv } from 'node:crypto';
import { WebrtcError } from '../errors.js';

const MASTER_KEY_BYTES = 16;
const MASTER_SALT_BYTES = 14;
const AUTH_KEY_BYTES = 20;
/** HMAC-SHA1 truncated to 80 bits (RFC 3711 section 4.2). */
export const AUTH_TAG_BYTES = 10;

/** Master key and salt of one direction, as exported by DTLS-SRTP (RFC 5764 section 4.2). */
export interface SrtpMasterKeys {
  masterKey: Buffer;
  masterSalt: Buffer;
}

interface SessionKeys {
  cipherKey: Buffer;
  salt: Buffer;
  authKey: Buffer;
}

const LABELS = {
  rtp: { cipher: 0, auth: 1, salt: 2 },
  rtcp: { cipher: 3, auth: 4, salt: 5 },
} as const;

/** Derives session keys with AES-CM and a key derivation rate of 0 (RFC 3711 section 4.3). */
export function deriveSessionKeys(master: SrtpMasterKeys, protocol: 'rtp' | 'rtcp'): SessionKeys {
  if (master.masterKey.length !== MASTER_KEY_BYTES || master.masterSalt.length !== MASTER_SALT_BYTES) {
    throw new WebrtcError(
      'BAD_KEY',
      `SRTP_AES128_CM_HMAC_SHA1_80 takes a key of 16 and a salt of 14 bytes, got ${master.masterKey.length} and ${master.masterSalt.length}`,
    );
  }
  const labels = LABELS[protocol];
  return {
    cipherKey: derive(master, labels.cipher, 16),
    authKey: derive(master, labels.auth, AUTH_KEY_BYTES),
    salt: derive(master, labels.salt, MASTER_SALT_BYTES),
  };
}

function derive(master: SrtpMasterKeys, label: number, length: number): Buffer {
  // x = label || index (48 bits, 0 here), right-aligned with the salt; the counter block is x * 2^16.
  const block = Buffer.alloc(16);
  master.masterSalt.copy(block);
  block[7] = block[7]! ^ label;
  const cipher = createCipheriv('aes-128-ctr', master.masterKey, block);
  return cipher.update(Buffer.alloc(length));
}
