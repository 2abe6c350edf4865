import { createHash, createHmac } from 'node:crypto';

const MASTER_SECRET_BYTES = 48;
const VERIFY_DATA_BYTES = 12;
/** SRTP_AES128_CM_HMAC_SHA1_80 (RFC 5764 section 4.1.2). */
const SRTP_KEY_BYTES = 16;
const SRTP_SALT_BYTES = 14;
/** TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (RFC 5288 section 3): no MAC keys, and four implicit bytes of each nonce. */
const WRITE_KEY_BYTES = 16;
const WRITE_IV_BYTES = 4;

export interface SrtpKeyMaterial {
  localKey: Buffer;
  localSalt: Buffer;
  remoteKey: Buffer;
  remoteSalt: Buffer;
}

export interface RecordKeys {
  key: Buffer;
  /** Implicit part of the nonce, which is not sent. */
  iv: Buffer;
}

interface Randoms {
  client: Buffer;
  server: Buffer;
}

interface Expansion {
  label: string;
  seed: Buffer;
  /** Bytes wanted. */
  length: number;
}

/** Returns P_SHA256 of label and seed (RFC 5246 section 5). */
export function prf(secret: Buffer, { label, seed, length }: Expansion): Buffer {
  const labelled = Buffer.concat([Buffer.from(label, 'latin1'), seed]);
  const blocks: Buffer[] = [];
  let a: Buffer = labelled;
  for (let have = 0; have < length; have += 32) {
    a = createHmac('sha256', secret).update(a).digest();
    blocks.push(createHmac('sha256', secret).update(a).update(labelled).digest());
  }
  return Buffer.concat(blocks).subarray(0, length);
}

/** Returns the master secret (RFC 5246 section 8.1). */
export function masterSecret(preMaster: Buffer, randoms: Randoms): Buffer {
  const seed = Buffer.concat([randoms.client, randoms.server]);
  return prf(preMaster, { label: 'master secret', seed, length: MASTER_SECRET_BYTES });
}

/** Returns the master secret bound to the handshake up to ClientKeyExchange (RFC 7627 section 4). */
export function extendedMasterSecret(preMaster: Buffer, transcript: readonly Buffer[]): Buffer {
  const seed = sha256(transcript);
  return prf(preMaster, { label: 'extended master secret', seed, length: MASTER_SECRET_BYTES });
}

/** Returns the record keys of both sides (RFC 5246 section 6.3). */
export function recordKeys(master: Buffer, randoms: Randoms): { client: RecordKeys; server: RecordKeys } {
  const seed = Buffer.concat([randoms.server, randoms.client]);
  const length = 2 * (WRITE_KEY_BYTES + WRITE_IV_BYTES);
  const take = cutter(prf(master, { label: 'key expansion', seed, length }));
  const keys = [take(WRITE_KEY_BYTES), take(WRITE_KEY_BYTES)] as const;
  const ivs = [take(WRITE_IV_BYTES), take(WRITE_IV_BYTES)] as const;
  return { client: { key: keys[0], iv: ivs[0] }, server: { key: keys[1], iv: ivs[1] } };
}

/** Returns the SRTP keys as seen by the server (RFC 5764 section 4.2). */
export function srtpKeys(master: Buffer, randoms: Randoms): SrtpKeyMaterial {
  const seed = Buffer.concat([randoms.client, randoms.server]);
  const length = 2 * (SRTP_KEY_BYTES + SRTP_SALT_BYTES);
  const take = cutter(prf(master, { label: 'EXTRACTOR-dtls_srtp', seed, length }));
  const [remoteKey, localKey] = [take(SRTP_KEY_BYTES), take(SRTP_KEY_BYTES)];
  const [remoteSalt, localSalt] = [take(SRTP_SALT_BYTES), take(SRTP_SALT_BYTES)];
  return { localKey, localSalt, remoteKey, remoteSalt };
}

/** Returns the verify data of a Finished message that follows these messages (RFC 5246 section 7.4.9). */
export function verifyData(master: Buffer, side: 'client' | 'server', transcript: readonly Buffer[]): Buffer {
  return prf(master, { label: `${side} finished`, seed: sha256(transcript), length: VERIFY_DATA_BYTES });
}

function sha256(parts: readonly Buffer[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function cutter(bytes: Buffer): (length: number) => Buffer {
  let at = 0;
  return (length) => bytes.subarray(at, (at += length));
}
