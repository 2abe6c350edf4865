/** TLS presentation language (RFC 5246 section 4): big-endian numbers and length-prefixed vectors. */

export function u8(value: number): Buffer {
  return Buffer.of(value);
}

export function u16(...values: number[]): Buffer {
  const out = Buffer.alloc(values.length * 2);
  values.forEach((value, i) => out.writeUInt16BE(value, i * 2));
  return out;
}

/** Returns a vector whose length field has `lengthBytes` bytes. */
export function vector(lengthBytes: 1 | 2 | 3, ...parts: readonly Uint8Array[]): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(
    parts.reduce((sum, part) => sum + part.length, 0),
    0,
    lengthBytes,
  );
  return Buffer.concat([length, ...parts]);
}

/** Reads zeros past the end and sets `overrun`, so that callers check once instead of after each field. */
export class WireReader {
  readonly #bytes: Buffer;
  overrun = false;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(bytes: 1 | 2 | 3): number {
    if (this.#at + bytes > this.#bytes.length) {
      this.#fail();
      return 0;
    }
    this.#at += bytes;
    return this.#bytes.readUIntBE(this.#at - bytes, bytes);
  }

  /** Returns a view of the next `length` bytes. */
  take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) {
      this.#fail();
      return Buffer.alloc(0);
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  vector(lengthBytes: 1 | 2 | 3): Buffer {
    return this.take(this.number(lengthBytes));
  }

  #fail(): void {
    this.overrun = true;
    this.#at = this.#bytes.length;
  }
}

/** Returns the 16-bit numbers of a vector; ignores an odd byte at the end. */
export function numbers16(bytes: Buffer): number[] {
  const list: number[] = [];
  for (let at = 0; at + 2 <= bytes.length; at += 2) list.push(bytes.readUInt16BE(at));
  return list;
}
