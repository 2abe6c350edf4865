import { hash } from 'node:crypto';
import { AUTH_TAG_BYTES } from './key-derivation.js';

const BLOCK = 64;
const DIGEST = 20;
/** One character per byte. A `Buffer` of 20 bytes costs more than the digest of a small packet. */
const ENCODING = 'binary';

/**
 * HMAC-SHA1 (RFC 2104) as two one-shot digests, which cost less than a `createHmac` object per packet. The message must
 * be preceded by 64 free bytes, which receive the padded key.
 */
export class HmacSha1 {
  readonly innerPad: Buffer;
  readonly #outer: Buffer;

  constructor(key: Buffer) {
    this.innerPad = Buffer.alloc(BLOCK, 0x36);
    this.#outer = Buffer.alloc(BLOCK + DIGEST, 0x5c);
    for (let i = 0; i < key.length; i += 1) {
      this.innerPad[i] = this.innerPad[i]! ^ key[i]!;
      this.#outer[i] = this.#outer[i]! ^ key[i]!;
    }
  }

  get outerPad(): Buffer {
    return this.#outer.subarray(0, BLOCK);
  }

  /** Returns the digest of `buffer[start, end)`, one character per byte. Overwrites the 64 bytes before `start`. */
  digest(buffer: Buffer, start: number, end: number): string {
    this.innerPad.copy(buffer, start - BLOCK);
    this.#outer.write(hash('sha1', buffer.subarray(start - BLOCK, end), ENCODING), BLOCK, ENCODING);
    return hash('sha1', this.#outer, ENCODING);
  }
}

/** Writes the tag of a digest at `packet[at]`. */
export function writeTag(digest: string, packet: Buffer, at: number): void {
  packet.write(digest, at, AUTH_TAG_BYTES, ENCODING);
}

/** Returns true if the tag matches. Compares in constant time. */
export function tagMatches(digest: string, packet: Buffer, at: number): boolean {
  let difference = 0;
  for (let i = 0; i < AUTH_TAG_BYTES; i += 1) difference |= digest.charCodeAt(i) ^ packet[at + i]!;
  return difference === 0;
}
