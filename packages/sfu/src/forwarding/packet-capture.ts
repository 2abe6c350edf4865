import type { CapturedPacket, CapturedPackets } from '../media-engine.js';

/** Limit on the bytes between two readings; packets beyond it are only counted. */
const MAX_BYTES = 1024 * 1024;
const FIRST_BYTES = 16 * 1024;
/** Time f64, direction u8, packet length u16, header length u16. */
const NOTE_BYTES = 13;
/** Limit on the recorded header, bytes; one with all extensions that clients send is a tenth of this. */
const MAX_HEADER = 1_024;
/** A capture that is not read for this long ends, ms. */
const FORGOTTEN_MS = 5_000;

/** Records times, directions and headers of the RTP packets of one transport, never their payloads. */
export class PacketCapture {
  readonly #now: () => number;
  #notes = Buffer.allocUnsafe(FIRST_BYTES);
  #used = 0;
  #dropped = 0;
  #askedAtMs: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#askedAtMs = now();
  }

  readonly watch = (direction: 'in' | 'out', buffer: Buffer, start: number, end: number): void => {
    const header = headerLength(buffer, start, end);
    if (header === 0) return;
    const needed = NOTE_BYTES + header;
    if (!this.#makeRoom(needed)) {
      this.#dropped++;
      return;
    }
    const notes = this.#notes;
    const at = this.#used;
    notes.writeDoubleLE(this.#now(), at);
    notes[at + 8] = direction === 'in' ? 0 : 1;
    notes.writeUInt16LE(end - start, at + 9);
    notes.writeUInt16LE(header, at + 11);
    buffer.copy(notes, at + NOTE_BYTES, start, start + header);
    this.#used += needed;
  };

  /** Returns the packets recorded since the last call. */
  take(): CapturedPackets {
    const notes = Uint8Array.prototype.slice.call(this.#notes, 0, this.#used) as Uint8Array;
    this.#used = 0;
    this.#askedAtMs = this.#now();

    return { notes, dropped: this.#dropped };
  }

  isForgotten(nowMs: number): boolean {
    return nowMs - this.#askedAtMs > FORGOTTEN_MS;
  }

  #makeRoom(bytes: number): boolean {
    if (this.#used + bytes <= this.#notes.length) return true;
    if (this.#notes.length >= MAX_BYTES) return false;
    const larger = Buffer.allocUnsafe(this.#notes.length * 2);
    this.#notes.copy(larger, 0, 0, this.#used);
    this.#notes = larger;

    return true;
  }
}

/**
 * Returns the length of fixed header, contributing sources and extension (RFC 3550 section 5.1), bytes; 0 if it is not
 * RTP.
 */
function headerLength(buffer: Buffer, start: number, end: number): number {
  const size = end - start;
  if (size < 12 || size > 0xff_ff) return 0;
  const first = buffer[start] as number;
  const type = buffer[start + 1] as number;
  if (first >> 6 !== 2 || (type >= 192 && type <= 223)) return 0;
  let length = 12 + 4 * (first & 0x0f);
  if ((first & 0x10) !== 0) {
    if (size < length + 4) return 0;
    length += 4 + 4 * buffer.readUInt16BE(start + length + 2);
  }

  return length <= size && length <= MAX_HEADER ? length : 0;
}

/** Yields the packets of one reading. */
export function* readCapture(notes: Uint8Array): Generator<CapturedPacket> {
  const view = new DataView(notes.buffer, notes.byteOffset, notes.byteLength);
  for (let at = 0; at + NOTE_BYTES <= notes.length; ) {
    const header = view.getUint16(at + 11, true);
    yield {
      atMs: view.getFloat64(at, true),
      direction: notes[at + 8] === 0 ? 'in' : 'out',
      length: view.getUint16(at + 9, true),
      header: notes.subarray(at + NOTE_BYTES, at + NOTE_BYTES + header),
    };
    at += NOTE_BYTES + header;
  }
}
