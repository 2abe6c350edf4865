import { hash } from 'node:crypto';
import { AUTH_TAG_BYTES } from './key-derivation.js';

const BLOCK = 64;
const DIGEST = 20;

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

  /** Returns the digest of `buffer[start, end)`. Overwrites the 64 bytes before `start`. */
  digest(buffer: Buffer, start: number, end: number): Buffer {
    this.innerPad.copy(buffer, start - BLOCK);
    hash('sha1', buffer.subarray(start - BLOCK, end), 'buffer').copy(this.#outer, BLOCK);
    return hash('sha1', this.#outer, 'buffer');
  }
}

/** Returns true if the tag matches. Compares in constant time. */
export function tagMatches(digest: Buffer, packet: Buffer, at: number): boolean {
  let difference = 0;
  for (let i = 0; i < AUTH_TAG_BYTES; i += 1) difference |= digest[i]! ^ packet[at + i]!;
  return difference === 0;
}
