import { createCipheriv, type Cipher } from 'node:crypto';

/** Keystream bytes per native call. The call itself costs about as much as encrypting this many bytes. */
export const BATCH_BYTES = 10_240;

const counters = new Uint32Array(BATCH_BYTES / 4);
const counterBytes = Buffer.from(counters.buffer);

/**
 * AES counter mode (RFC 3711 section 4.1.1) on a cached ECB cipher, which computes the key schedule once per session.
 * One `createCipheriv` per packet would cost more than the encryption itself.
 */
export class AesCounter {
  readonly #cipher: Cipher;
  readonly #salt1: number;
  /** First word of every counter block, in memory byte order. */
  readonly word0: number;
  /** Salt words combined with the upper 32 and the lower 16 bits of a packet's index, as plain numbers. */
  readonly salt2: number;
  readonly salt3: number;

  constructor(key: Buffer, salt: Buffer) {
    this.#cipher = createCipheriv('aes-128-ecb', key, null);
    this.#cipher.setAutoPadding(false);
    this.word0 = swap(salt.readUInt32BE(0));
    this.#salt1 = salt.readUInt32BE(4);
    this.salt2 = salt.readUInt32BE(8);
    this.salt3 = salt.readUInt16BE(12);
  }

  /** Returns the second word of an SSRC's counter blocks, in memory byte order. */
  word1(ssrc: number): number {
    return swap(this.#salt1 ^ ssrc);
  }

  /** Returns the keystream of the counter blocks, a multiple of 16 bytes, in newly allocated memory. */
  encryptBlocks(blocks: Buffer): Buffer {
    return this.#cipher.update(blocks);
  }

  /**
   * Returns the keystream of `packets` consecutive indices starting at `index`, with `bytesEach` (a multiple of 16) per
   * packet, in newly allocated memory. `packets * bytesEach` must not exceed `BATCH_BYTES`.
   */
  keystream(ssrc: number, index: number, packets: number, bytesEach: number): Buffer {
    const { word0, salt2, salt3 } = this;
    const word1 = this.word1(ssrc);
    const blocks = bytesEach >>> 4;
    let at = 0;
    for (let packet = 0; packet < packets; packet += 1) {
      const packetIndex = index + packet;
      const word2 = swap(salt2 ^ Math.floor(packetIndex / 65536));
      const low = salt3 ^ (packetIndex % 65536);
      const word3 = ((low & 0xff) << 8) | (low >>> 8);
      for (let block = 0; block < blocks; block += 1) {
        counters[at] = word0;
        counters[at + 1] = word1;
        counters[at + 2] = word2;
        counters[at + 3] = word3 | ((block & 0xff00) << 8) | (block << 24);
        at += 4;
      }
    }
    return this.#cipher.update(counterBytes.subarray(0, at * 4));
  }
}

function swap(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}
