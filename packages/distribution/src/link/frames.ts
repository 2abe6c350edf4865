import { MAX_FRAME_BYTES } from '../limits.js';

/** Receives the bytes of one frame without its length; an empty frame is a tick. Returns false to stop reading. */
export type OnFrame = (bytes: Buffer, start: number, end: number) => boolean;

/** Smaller chunks are copied together, because each of many tiny ones would cost a hundred times its bytes. */
const SMALL_CHUNK_BYTES = 4 * 1024;
const BLOCK_BYTES = 64 * 1024;

/** Limits the bytes of incomplete frames over all connections of a node. */
export class FrameBudget {
  used = 0;

  constructor(readonly maxBytes: number) {}
}

/**
 * Splits a stream of bytes into frames (a 32-bit length followed by that number of bytes). A frame within one chunk is
 * not copied; a frame spread over several chunks is assembled once, when it is complete.
 */
export class FrameDecoder {
  readonly #maxFrameBytes: number;
  readonly #budget: FrameBudget;
  #chunks: Buffer[] = [];
  #buffered = 0;
  #needed = 4;
  /** The last chunk if it is a block that collects small ones, and the number of bytes used in it. */
  #block: Buffer | undefined;
  #blockUsed = 0;

  constructor(maxFrameBytes = MAX_FRAME_BYTES, budget = new FrameBudget(Number.POSITIVE_INFINITY)) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#budget = budget;
  }

  /** Bytes of an incomplete frame. */
  get pendingBytes(): number {
    return this.#buffered;
  }

  /**
   * Reads a chunk. `stopped`: `onFrame` returned false. `too_big`: the frame, or the incomplete frames of all
   * connections together, exceed their limit; nothing more may be pushed.
   */
  push(chunk: Buffer, onFrame: OnFrame): 'ok' | 'stopped' | 'too_big' {
    let bytes = chunk;
    if (this.#buffered > 0) {
      this.#append(chunk);
      if (this.#buffered < this.#needed) return this.#budget.used > this.#budget.maxBytes ? 'too_big' : 'ok';
      bytes = Buffer.concat(this.#chunks, this.#buffered);
      this.clear();
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

  /** Forgets an incomplete frame. */
  clear(): void {
    this.#budget.used -= this.#buffered;
    this.#chunks = [];
    this.#buffered = 0;
    this.#block = undefined;
  }

  #keep(bytes: Buffer, at: number, needed: number): void {
    // A few bytes must not keep a chunk of 64 KiB alive while the connection is silent.
    const rest = bytes.subarray(at);
    this.#chunks = [rest.length < 1_024 ? Buffer.from(rest) : rest];
    this.#buffered = rest.length;
    this.#budget.used += rest.length;
    this.#needed = needed;
  }

  #append(chunk: Buffer): void {
    this.#buffered += chunk.length;
    this.#budget.used += chunk.length;
    if (chunk.length >= SMALL_CHUNK_BYTES) {
      this.#chunks.push(chunk);
      this.#block = undefined;
      return;
    }
    if (this.#block === undefined || this.#blockUsed + chunk.length > this.#block.length) {
      const missing = this.#needed - this.#buffered;
      this.#block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, chunk.length + Math.max(0, missing)));
      this.#blockUsed = 0;
      this.#chunks.push(this.#block.subarray(0, 0));
    }
    chunk.copy(this.#block, this.#blockUsed);
    this.#blockUsed += chunk.length;
    this.#chunks[this.#chunks.length - 1] = this.#block.subarray(0, this.#blockUsed);
  }
}
