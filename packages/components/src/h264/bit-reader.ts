/** Reads the payload bits of a NAL unit, skipping emulation prevention bytes. Reads zeros past the end. */
export class BitReader {
  #at = 0;
  readonly #bytes: Buffer;

  /** Reads at most `maxBytes`: headers are short, slices are not. */
  constructor(nal: Buffer, start: number, maxBytes = 512) {
    const end = Math.min(nal.length, start + maxBytes);
    const bytes = Buffer.alloc(Math.max(0, end - start));
    let length = 0;
    let zeros = 0;
    for (let i = start; i < end; i++) {
      const byte = nal[i]!;
      if (zeros >= 2 && byte === 3) {
        zeros = 0;
        continue;
      }
      zeros = byte === 0 ? zeros + 1 : 0;
      bytes[length++] = byte;
    }
    this.#bytes = bytes.subarray(0, length);
  }

  bit(): number {
    const byte = this.#bytes[this.#at >> 3] ?? 0;
    const bit = (byte >> (7 - (this.#at & 7))) & 1;
    this.#at++;
    return bit;
  }

  bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++) value = value * 2 + this.bit();
    return value;
  }

  skip(count: number): void {
    this.#at += count;
  }

  /** True after a read past the end. */
  get overrun(): boolean {
    return this.#at > this.#bytes.length * 8;
  }

  /** ue(v), ITU-T H.264 section 9.1. */
  ue(): number {
    let zeros = 0;
    while (zeros < 32 && this.bit() === 0) zeros++;
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** se(v) */
  se(): number {
    const code = this.ue();
    return code % 2 === 0 ? -code / 2 : (code + 1) / 2;
  }
}
