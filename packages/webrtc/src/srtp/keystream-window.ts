import type { AesCounter } from './aes-counter.js';
import { BATCH_BYTES } from './aes-counter.js';
import { KeystreamPlan } from './keystream-plan.js';

/** Keystream of one SSRC in JavaScript memory. */
export class KeystreamWindow {
  /** Results of `seek`: the packet's keystream starts at `words[at]`. */
  words = new Uint32Array(0);
  at = 0;
  readonly #counter: AesCounter;
  readonly #ssrc: number;
  readonly #batchBytes: number;
  readonly #plan = new KeystreamPlan();
  #batch: Uint32Array<ArrayBuffer> = this.words;

  /** `batchBytes`: length of the keystream that is generated at once, and kept. */
  constructor(counter: AesCounter, ssrc: number, batchBytes = BATCH_BYTES) {
    this.#counter = counter;
    this.#ssrc = ssrc;
    this.#batchBytes = batchBytes;
  }

  /** Provides at least `length` bytes of keystream for this index, in `words` starting at `at`. */
  seek(index: number, length: number): void {
    const plan = this.#plan;
    if (!plan.covers(index, length)) {
      const rounded = (length + 15) & ~15;
      // A late packet must not discard the keystream of later packets.
      if (index < plan.first) {
        this.words = asWords(this.#counter.keystream(this.#ssrc, index, 1, rounded));
        this.at = 0;
        return;
      }
      plan.advance(index, length, Math.max(this.#batchBytes, rounded));
      this.#batch = asWords(this.#counter.keystream(this.#ssrc, index, plan.packets, plan.bytesEach));
    }
    this.words = this.#batch;
    this.at = ((index - plan.first) * plan.bytesEach) >>> 2;
  }
}

/** Returns the same bytes as 32-bit words. */
export function asWords(bytes: Buffer): Uint32Array<ArrayBuffer> {
  const aligned = (bytes.byteOffset & 3) === 0 ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  return new Uint32Array(aligned.buffer as ArrayBuffer, aligned.byteOffset, aligned.byteLength >>> 2);
}
