// SFrame (RFC 9605) with the cipher suite AES_128_GCM_SHA256_128.
import type { Bytes } from '../frame.js';

/** RFC 9605 section 8.1. */
const CIPHER_SUITE = 4;
const KEY_BYTES = 16;
const NONCE_BYTES = 12;
const MAX_INTEGER_BYTES = 8;

/** What seals and opens the frames of one key id. */
export interface FrameKeys {
  readonly key: CryptoKey;
  readonly salt: Bytes;
}

/** The header of a sealed frame. `bytes` is its length. */
export interface SFrameHeader {
  readonly keyId: Bytes;
  readonly counter: number;
  readonly bytes: number;
}

/** Imports a shared secret, from which the keys of all key ids are derived. */
export function importSecret(secret: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
}

/** Derives bytes from a shared secret: HKDF with SHA-256 and an empty salt. */
export async function derive(secret: CryptoKey, info: Bytes, length: number): Promise<Bytes> {
  const algorithm = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info };
  return new Uint8Array(await crypto.subtle.deriveBits(algorithm, secret, length * 8));
}

/** Derives the keys of a key id of at most 8 bytes (RFC 9605 section 4.4.2). */
export async function deriveKeys(secret: CryptoKey, keyId: Bytes): Promise<FrameKeys> {
  const label = (name: string): Bytes => {
    const id = new Uint8Array(MAX_INTEGER_BYTES);
    id.set(keyId, MAX_INTEGER_BYTES - keyId.length);
    return concat(new TextEncoder().encode(`SFrame 1.0 Secret ${name} `), id, Uint8Array.of(0, CIPHER_SUITE));
  };
  const [key, salt] = await Promise.all([
    derive(secret, label('key'), KEY_BYTES),
    derive(secret, label('salt'), NONCE_BYTES),
  ]);
  return { key: await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']), salt };
}

/**
 * Seals a frame: its header and the ciphertext with its tag. `metadata` is authenticated, but not part of the result.
 * A counter must never be used twice with one key id.
 */
export async function seal(
  { key, salt }: FrameKeys,
  { keyId, counter, metadata }: { keyId: Bytes; counter: number; metadata: Bytes },
  plain: Bytes,
): Promise<Bytes> {
  const header = encodeHeader(keyId, counter);
  const algorithm = { name: 'AES-GCM', iv: nonce(salt, counter), additionalData: concat(header, metadata) };
  return concat(header, new Uint8Array(await crypto.subtle.encrypt(algorithm, key, plain)));
}

/**
 * Opens a frame that `seal` made.
 * @throws DOMException OperationError if the key is another one, or if the frame or its metadata was changed
 */
export async function open(
  { key, salt }: FrameKeys,
  { header, metadata }: { header: SFrameHeader; metadata: Bytes },
  sealed: Bytes,
): Promise<Bytes> {
  const additionalData = concat(sealed.subarray(0, header.bytes), metadata);
  const algorithm = { name: 'AES-GCM', iv: nonce(salt, header.counter), additionalData };
  return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, sealed.subarray(header.bytes)));
}

/** Encodes a header (RFC 9605 section 4.3): a byte of lengths, then key id and counter where they do not fit in it. */
export function encodeHeader(keyId: Bytes, counter: number): Bytes {
  const count = integerBytes(counter);
  const [ofId, idBytes] = encodeInteger(keyId);
  const [ofCounter, counterBytes] = encodeInteger(count);
  return concat(Uint8Array.of((ofId << 4) | ofCounter), idBytes, counterBytes);
}

/** Decodes the header of a sealed frame; undefined if it is cut off or its counter exceeds 2^53. */
export function decodeHeader(sealed: Bytes): SFrameHeader | undefined {
  const [lengths = 0] = sealed;
  const keyId = decodeInteger(sealed, 1, lengths >> 4);
  const counter = decodeInteger(sealed, 1 + keyId.length, lengths & 0xf);
  const bytes = 1 + keyId.length + counter.length;
  const value = counter.value.reduce((sum, byte) => sum * 256 + byte, 0);
  if (sealed.length < Math.max(bytes, 1) || !Number.isSafeInteger(value)) return undefined;
  return { keyId: keyId.value, counter: value, bytes };
}

/** A flag and three bits: the integer itself if it is below 8, otherwise the number of its bytes less one. */
function encodeInteger(bytes: Bytes): [bits: number, bytes: Bytes] {
  const [only = 0] = bytes;
  return bytes.length === 1 && only < 8 ? [only, new Uint8Array()] : [8 | (bytes.length - 1), bytes];
}

function decodeInteger(data: Bytes, at: number, bits: number): { value: Bytes; length: number } {
  if (bits < 8) return { value: Uint8Array.of(bits), length: 0 };
  const length = (bits & 7) + 1;
  return { value: data.slice(at, at + length), length };
}

/** The fewest big-endian bytes of an integer, at least one. */
function integerBytes(value: number): Bytes {
  const bytes: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.from(bytes.length === 0 ? [0] : bytes);
}

function nonce(salt: Bytes, counter: number): Bytes {
  const result = salt.slice();
  const count = integerBytes(counter);
  const start = NONCE_BYTES - count.length;
  for (const [i, byte] of count.entries()) result[start + i] = (result[start + i] ?? 0) ^ byte;
  return result;
}

export function concat(...parts: readonly Bytes[]): Bytes {
  const result = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
