import { readU16, readU32, writeU16, writeU32 } from '../bytes.js';
import type { PacketStore } from '../packet-store.js';
import { rtpHeaderLength, type RtpView } from '../rtp-view.js';
import { opusSamples } from './opus.js';

/** Most redundant blocks of a packet that are read; browsers send one or two, and nine at most. */
const MAX_BLOCKS = 9;
const HEADER_BYTES = 4;
const FIXED_RTP_HEADER = 12;
/** Bounds of a block by the sizes of its fields: 10 bits of length, 14 bits of timestamp offset. */
const MAX_BLOCK_BYTES = 1023;
const MAX_OFFSET = 16_383;
const EMPTY = Buffer.alloc(0);
/** Largest payload with redundancy that we make, bytes; a larger one might not fit into a datagram. */
const MAX_RED_PAYLOAD = 1100;

/** Most earlier packets that we repeat in one. */
const MAX_DISTANCE = 2;

/**
 * Reads redundant Opus (RFC 2198 section 3): earlier packets, oldest first, and then the packet itself. There is one
 * reader per stream; its fields are valid until the next `read`.
 */
export class RedReader {
  /** Redundant blocks of the packet. */
  count = 0;
  #buffer: Buffer = EMPTY;
  #start = 0;
  #headerLength = 0;
  #primary = 0;
  #end = 0;
  #timestamp = 0;
  #payloadType = 0;
  readonly #types = new Uint8Array(MAX_BLOCKS);
  /** Timestamp units before the packet. */
  readonly #offsets = new Uint16Array(MAX_BLOCKS);
  readonly #starts = new Uint32Array(MAX_BLOCKS);
  readonly #lengths = new Uint16Array(MAX_BLOCKS);
  readonly #restored = Buffer.alloc(FIXED_RTP_HEADER + MAX_BLOCK_BYTES);

  /**
   * Reads the payload in `view`, whose packet itself must have this payload type. Returns false if it is malformed: it
   * ends within a block, has more blocks than anybody sends, or blocks that are not older each than the next. Never
   * throws.
   */
  read(view: RtpView, payloadType: number): boolean {
    const { buffer, payloadStart, payloadEnd } = view;
    let at = payloadStart;
    let bytes = 0;
    let newer = MAX_OFFSET + 1;
    this.count = 0;
    while (at < payloadEnd && buffer[at]! >= 0x80) {
      if (this.count === MAX_BLOCKS || at + HEADER_BYTES > payloadEnd) return false;
      const fields = readU16(buffer, at + 1);
      const offset = fields >>> 2;
      if (offset === 0 || offset >= newer) return false;
      newer = offset;
      this.#types[this.count] = buffer[at]! & 0x7f;
      this.#offsets[this.count] = offset;
      this.#lengths[this.count] = ((fields & 3) << 8) | buffer[at + 3]!;
      this.#starts[this.count] = bytes;
      bytes += this.#lengths[this.count]!;
      this.count++;
      at += HEADER_BYTES;
    }
    if (at >= payloadEnd || buffer[at] !== payloadType) return false;
    for (let i = 0; i < this.count; i++) {
      this.#starts[i]! += at + 1;
      if (this.#types[i] !== payloadType) this.#lengths[i] = 0;
    }
    this.#primary = at + 1 + bytes;
    this.#buffer = buffer;
    this.#start = view.start;
    this.#headerLength = view.headerLength;
    this.#end = view.end;
    this.#timestamp = view.timestamp;
    this.#payloadType = payloadType;
    return this.#primary < payloadEnd;
  }

  /**
   * Makes `view` show the earlier packet of a block, under this sequence number. Returns false if the block does not
   * end where the next begins: it is from before a pause (DTX), or not from the packet before.
   */
  restore(block: number, sequence: number, view: RtpView): boolean {
    const start = this.#starts[block]!;
    const length = this.#lengths[block]!;
    const offset = this.#offsets[block]!;
    const next = block + 1 < this.count ? this.#offsets[block + 1]! : 0;
    if (length === 0 || opusSamples(this.#buffer, start, start + length) !== offset - next) return false;
    const packet = this.#restored;
    this.#buffer.copy(packet, 0, this.#start, this.#start + FIXED_RTP_HEADER);
    // Neither header extensions nor CSRCs, padding or marker: they are those of the later packet.
    packet[0] = 0x80;
    packet[1] = this.#types[block]!;
    writeU16(packet, 2, sequence % 65536);
    writeU32(packet, 4, this.#timestamp - offset);
    this.#buffer.copy(packet, FIXED_RTP_HEADER, start, start + length);
    return view.parse(packet, 0, FIXED_RTP_HEADER + length);
  }

  /** Makes `view` show the packet without its redundancy, within its buffer. Must come after each `restore`. */
  unwrap(view: RtpView): boolean {
    const buffer = this.#buffer;
    const moved = this.#primary - this.#headerLength;
    buffer.copyWithin(moved, this.#start, this.#start + this.#headerLength);
    buffer[moved + 1] = (buffer[moved + 1]! & 0x80) | this.#payloadType;
    return view.parse(buffer, moved, this.#end);
  }
}

/** Repeats the packets before one in front of its payload (RFC 2198 section 3), for one receiver. */
export class RedWriter {
  readonly #payloadType: number;
  readonly #blockType: number;
  /** Blocks found by `find`, newest first. */
  readonly #starts = new Uint32Array(MAX_DISTANCE);
  readonly #lengths = new Uint16Array(MAX_DISTANCE);
  readonly #offsets = new Uint16Array(MAX_DISTANCE);
  #count = 0;

  constructor(types: { red: number; blocks: number }) {
    this.#payloadType = types.red;
    this.#blockType = types.blocks;
  }

  /**
   * Searches for the packets before the one in `view`, at most `distance`. Returns how many of them can be repeated,
   * until the next search: none from before a gap in the sound, nor more than fit. The same packet finds the same ones
   * again while they are stored.
   */
  find(store: PacketStore, view: RtpView, sequence: number, distance: number, nowMs: number): number {
    this.#count = 0;
    let left = MAX_RED_PAYLOAD - view.payloadLength - 1;
    let behind = 0;
    for (let back = 1; back <= distance && back <= MAX_DISTANCE; back++) {
      if (!store.find(sequence - back, nowMs)) break;
      const { buffer, start, end } = store;
      const payloadStart = start + rtpHeaderLength(buffer, start, end);
      const length = end - payloadStart;
      const offset = (view.timestamp - readU32(buffer, start + 4)) >>> 0;
      left -= HEADER_BYTES + length;
      if (length === 0 || length > MAX_BLOCK_BYTES || left < 0 || offset > MAX_OFFSET) break;
      if (opusSamples(buffer, payloadStart, end) !== offset - behind) break;
      this.#starts[back - 1] = payloadStart;
      this.#lengths[back - 1] = length;
      this.#offsets[back - 1] = offset;
      behind = offset;
      this.#count = back;
    }
    return this.#count;
  }

  /**
   * Writes what precedes the payload of the packet last searched for, behind its RTP header at `target[at]`, which gets
   * the payload type of redundancy. Returns its length.
   */
  write(store: PacketStore, target: Buffer, at: number, headerLength: number): number {
    target[at + 1] = (target[at + 1]! & 0x80) | this.#payloadType;
    const start = at + headerLength;
    let end = start;
    for (let i = this.#count - 1; i >= 0; i--) {
      const length = this.#lengths[i]!;
      target[end] = 0x80 | this.#blockType;
      writeU16(target, end + 1, (this.#offsets[i]! << 2) | (length >>> 8));
      target[end + 3] = length & 0xff;
      end += HEADER_BYTES;
    }
    target[end++] = this.#blockType;
    for (let i = this.#count - 1; i >= 0; i--) {
      const from = this.#starts[i]!;
      end += store.buffer.copy(target, end, from, from + this.#lengths[i]!);
    }
    return end - start;
  }
}
