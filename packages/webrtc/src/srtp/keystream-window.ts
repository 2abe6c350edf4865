import type { AesCounter } from './aes-counter.js';
import { BATCH_BYTES } from './aes-counter.js';

/** A packet rarely needs more; larger ones get a batch of their own. */
const MAX_PACKETS = 64;

/**
 * Decides for which packets of one SSRC keystream is made in one call: for the one asked for and the next few, in pieces
 * as long as the stream's recent packets. Where the bytes are kept is the subclass's or owner's business.
 */
export class KeystreamPlan {
  /** The indices covered are `[first, first + packets)`. */
  first = 0;
  packets = 0;
  bytesEach = 0;
  #longest = 0;
  #longestBefore = 0;

  covers(index: number, length: number): boolean {
    if (length > this.#longest) this.#longest = length;
    return index >= this.first && index < this.first + this.packets && length <= this.bytesEach;
  }

  /** Plans the next batch, starting with this packet. `limit`: at most this many bytes. */
  advance(index: number, length: number, limit: number): void {
    const longest = Math.max(length, this.#longest, this.#longestBefore);
    this.#longestBefore = this.#longest;
    this.#longest = length;
    this.bytesEach = Math.max(16, Math.min(limit & ~15, (longest + 63) & ~63));
    this.packets = Math.max(1, Math.min(MAX_PACKETS, Math.floor(limit / this.bytesEach)));
    this.first = index;
  }
}

/** Keystream of one SSRC kept on the JavaScript side. */
export class KeystreamWindow {
  /** Results of `seek`: the packet's keystream begins at `words[at]`. */
  words = new Uint32Array(0);
  at = 0;
  readonly #counter: AesCounter;
  readonly #ssrc: number;
  readonly #plan = new KeystreamPlan();
  #batch: Uint32Array<ArrayBuffer> = this.words;

  constructor(counter: AesCounter, ssrc: number) {
    this.#counter = counter;
    this.#ssrc = ssrc;
  }

  /** Makes at least `length` bytes of keystream for this index available in `words` from `at` on. */
  seek(index: number, length: number): void {
    const plan = this.#plan;
    if (!plan.covers(index, length)) {
      const rounded = (length + 15) & ~15;
      // A late packet must not throw away the keystream of those to come.
      if (index < plan.first) {
        this.words = asWords(this.#counter.keystream(this.#ssrc, index, 1, rounded));
        this.at = 0;
        return;
      }
      plan.advance(index, length, BATCH_BYTES);
      this.#batch = asWords(this.#counter.keystream(this.#ssrc, index, plan.packets, plan.bytesEach));
    }
    this.words = this.#batch;
    this.at = ((index - plan.first) * plan.bytesEach) >>> 2;
  }
}

/** The same bytes as 32-bit words. */
export function asWords(bytes: Buffer): Uint32Array<ArrayBuffer> {
  const aligned = (bytes.byteOffset & 3) === 0 ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  return new Uint32Array(aligned.buffer as ArrayBuffer, aligned.byteOffset, aligned.byteLength >>> 2);
}
