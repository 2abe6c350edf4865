/** Largest frame by default: OTP sends each message as one, whatever its size, because we negotiate no fragments. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;

/** Called with the bytes of one frame, length taken off; an empty one is a tick. `false` ends the reading. */
export type OnFrame = (bytes: Buffer, start: number, end: number) => boolean;

/**
 * Cuts a stream of bytes into frames (a length of 32 bits and that many bytes). A frame within one chunk is not copied;
 * one of several chunks is put together once, when it is complete.
 */
export class FrameDecoder {
  readonly #maxFrameBytes: number;
  #chunks: Buffer[] = [];
  #buffered = 0;
  #needed = 4;

  constructor(maxFrameBytes = MAX_FRAME_BYTES) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** Bytes of an incomplete frame that are kept. */
  get pendingBytes(): number {
    return this.#buffered;
  }

  /** `ok`, `stopped` when `onFrame` returned false, or `too_big`, in which case nothing more may be pushed. */
  push(chunk: Buffer, onFrame: OnFrame): 'ok' | 'stopped' | 'too_big' {
    let bytes = chunk;
    if (this.#buffered > 0) {
      this.#chunks.push(chunk);
      this.#buffered += chunk.length;
      if (this.#buffered < this.#needed) return 'ok';
      bytes = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#buffered);
      this.#chunks = [];
      this.#buffered = 0;
    }
    let at = 0;
    const end = bytes.length;
    while (at + 4 <= end) {
      const length =
        (bytes[at] as number) * 0x1000000 +
        (((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number));
      if (length > this.#maxFrameBytes) return 'too_big';
      if (at + 4 + length > end) {
        this.#keep(bytes, at, 4 + length);
        return 'ok';
      }
      at += 4 + length;
      if (!onFrame(bytes, at - length, at)) return 'stopped';
    }
    if (at < end) this.#keep(bytes, at, 4);
    return 'ok';
  }

  #keep(bytes: Buffer, at: number, needed: number): void {
    // A few bytes must not keep a chunk of 64 KiB alive while the connection is silent.
    const rest = bytes.subarray(at);
    this.#chunks = [rest.length < 1_024 ? Buffer.from(rest) : rest];
    this.#buffered = rest.length;
    this.#needed = needed;
  }
}
