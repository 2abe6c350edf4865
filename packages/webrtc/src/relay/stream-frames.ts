import { STUN_HEADER_LENGTH } from '../stun/constants.js';
import { MAX_STUN_LENGTH } from '../stun/message.js';
import { CHANNEL_DATA_HEADER } from './channel-data.js';

/** Longest ChannelData payload accepted from a stream; our datagrams are far shorter. */
const MAX_CHANNEL_PAYLOAD = 4096;

/**
 * Splits a TCP byte stream into STUN messages and ChannelData frames. Both are padded to four bytes on a stream, and
 * the ChannelData length excludes the padding (RFC 8656 section 12.5). Memory is bounded by one frame.
 */
export class StreamFrames {
  #rest: Buffer = EMPTY;
  #broken = false;

  /** True once the stream is invalid: the next frame boundary is unknown, so the caller must close it. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Yields the complete frames of the buffered rest and `chunk`, without padding; as views where possible. */
  *push(chunk: Buffer): Generator<Buffer, void, undefined> {
    if (this.#broken) return;
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = EMPTY;
    for (;;) {
      if (data.length < CHANNEL_DATA_HEADER) break;
      const length = frameLength(data);
      if (length === undefined) {
        this.#broken = true;
        return;
      }
      const padded = (length + 3) & ~3;
      if (data.length < padded) break;
      yield data.subarray(0, length);
      data = data.subarray(padded);
    }
    // Copied, outside Node's pool, so that the rest neither retains a large chunk nor changes with it.
    this.#rest = data.length === 0 ? EMPTY : Buffer.from(new Uint8Array(data).buffer);
  }
}

/** Returns the length of the frame that begins here, without padding; undefined if no valid frame does. */
function frameLength(data: Buffer): number | undefined {
  const first = data[0] ?? 0xff;
  const length = data.readUInt16BE(2);
  if (first <= 3 && (length & 3) === 0 && length + STUN_HEADER_LENGTH <= MAX_STUN_LENGTH) {
    return length + STUN_HEADER_LENGTH;
  }
  if (first >= 64 && first <= 79 && length <= MAX_CHANNEL_PAYLOAD) return length + CHANNEL_DATA_HEADER;
  return undefined;
}

/** Returns a frame for the stream: a copy, zero-padded to four bytes. */
export function streamFrame(frame: Buffer): Buffer {
  const out = Buffer.alloc((frame.length + 3) & ~3);
  frame.copy(out);
  return out;
}

const EMPTY = Buffer.alloc(0);
