/**
 * Sound packets between the server and a process of calls, many per message because messages cost more than bytes.
 * Layout of each: call (4 bytes), track (4), timestamp (8, a double), length (2), Opus packet; big-endian.
 */
export interface BatchFrame {
  call: number;
  /** 0 for packets from the phone. */
  track: number;
  /** In ticks of 48 kHz. */
  timestamp: number;
  /** One Opus packet; empty = packets are missing here. */
  data: Uint8Array;
}

const HEADER = 18;
const LONGEST = 0xffff;

export class FrameBatch {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;

  get empty(): boolean {
    return this.#length === 0;
  }

  /** Oversized packets are dropped. */
  add({ call, track, timestamp, data }: BatchFrame): void {
    if (data.length > LONGEST) return;
    const end = this.#length + HEADER + data.length;
    if (end > this.#bytes.length) {
      const bigger = Buffer.allocUnsafe(Math.max(end, this.#bytes.length * 2));
      this.#bytes.copy(bigger, 0, 0, this.#length);
      this.#bytes = bigger;
    }
    const bytes = this.#bytes;
    bytes.writeUInt32BE(call, this.#length);
    bytes.writeUInt32BE(track, this.#length + 4);
    bytes.writeDoubleBE(timestamp, this.#length + 8);
    bytes.writeUInt16BE(data.length, this.#length + 16);
    bytes.set(data, this.#length + HEADER);
    this.#length = end;
  }

  /** Returns everything added since the last call; valid until the next `add`. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return taken;
  }
}

/** Yields the packed frames, whose packets are views of `bytes`. Stops at truncated bytes. */
export function* framesOf(bytes: Uint8Array): Generator<BatchFrame> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + HEADER <= view.length; ) {
    const end = at + HEADER + view.readUInt16BE(at + 16);
    if (end > view.length) return;
    yield {
      call: view.readUInt32BE(at),
      track: view.readUInt32BE(at + 4),
      timestamp: view.readDoubleBE(at + 8),
      data: view.subarray(at + HEADER, end),
    };
    at = end;
  }
}
