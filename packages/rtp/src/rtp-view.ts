import { readU16, readU32 } from './bytes.js';

const FIXED_HEADER = 12;
const ONE_BYTE_PROFILE = 0xbede;
const EMPTY = Buffer.alloc(0);

/**
 * Returns the length of the RTP header (fixed part, CSRCs, extension block) of `buffer[start, end)`, or -1 if the bytes
 * are not an RTP header. Reads nothing that SRTP encrypts, so it works before decryption. RFC 3550 section 5.1.
 */
export function rtpHeaderLength(buffer: Buffer, start: number, end: number): number {
  if (end - start < FIXED_HEADER || end > buffer.length) return -1;
  const first = buffer[start]!;
  if (first >>> 6 !== 2) return -1;
  let length = FIXED_HEADER + (first & 0x0f) * 4;
  if ((first & 0x10) !== 0) {
    if (start + length + 4 > end) return -1;
    length += 4 + readU16(buffer, start + length + 2) * 4;
  }
  return start + length > end ? -1 : length;
}

/**
 * A reusable view of one plaintext RTP packet: `parse` fills it, nothing is copied. Offsets are absolute in `buffer`.
 * One view suffices for a worker; it is valid until the next `parse`.
 */
export class RtpView {
  buffer: Buffer = EMPTY;
  start = 0;
  end = 0;
  marker = false;
  payloadType = 0;
  sequence = 0;
  timestamp = 0;
  ssrc = 0;
  csrcCount = 0;
  headerLength = 0;
  /** First payload byte. */
  payloadStart = 0;
  /** One past the last payload byte; padding is not payload. */
  payloadEnd = 0;
  /** Padding bytes, including the length byte; 0 = none. */
  paddingLength = 0;
  /** First byte of the extension elements; meaningful while `extensionsEnd` is greater. */
  extensionsStart = 0;
  extensionsEnd = 0;
  /** 0xBEDE, 0x1000..0x100F, a private profile, or 0 without an extension block. */
  extensionProfile = 0;
  /** Offset of the element that `findExtension` found last. */
  foundStart = 0;
  foundLength = 0;

  get payloadLength(): number {
    return this.payloadEnd - this.payloadStart;
  }

  /** True for a padding-only packet, sent to probe or to keep a path alive; it carries no media. */
  get isPaddingOnly(): boolean {
    return this.payloadEnd === this.payloadStart;
  }

  /**
   * Returns false if `buffer[start, end)` is not an RTP packet; the view is then unusable until the next successful
   * parse.
   */
  parse(buffer: Buffer, start = 0, end = buffer.length): boolean {
    const headerLength = rtpHeaderLength(buffer, start, end);
    if (headerLength < 0) return false;
    const first = buffer[start]!;
    const payloadStart = start + headerLength;

    let padding = 0;
    if ((first & 0x20) !== 0) {
      // Even a padding-only packet holds its length byte.
      if (payloadStart >= end) return false;
      padding = buffer[end - 1]!;
      if (padding === 0 || payloadStart + padding > end) return false;
    }

    const second = buffer[start + 1]!;
    this.buffer = buffer;
    this.start = start;
    this.end = end;
    this.marker = second >= 128;
    this.payloadType = second & 0x7f;
    this.sequence = readU16(buffer, start + 2);
    this.timestamp = readU32(buffer, start + 4);
    this.ssrc = readU32(buffer, start + 8);
    this.csrcCount = first & 0x0f;
    this.headerLength = headerLength;
    this.payloadStart = payloadStart;
    this.payloadEnd = end - padding;
    this.paddingLength = padding;
    if ((first & 0x10) !== 0) {
      const at = start + FIXED_HEADER + this.csrcCount * 4;
      this.extensionProfile = readU16(buffer, at);
      this.extensionsStart = at + 4;
      this.extensionsEnd = payloadStart;
    } else {
      this.extensionProfile = 0;
      this.extensionsStart = 0;
      this.extensionsEnd = 0;
    }
    return true;
  }

  /**
   * Searches for the header extension element with this id in the one-byte or two-byte form (RFC 8285 sections 4.2 and
   * 4.3). If it returns true, the data is `buffer[foundStart, foundStart + foundLength)`.
   */
  findExtension(id: number): boolean {
    if (this.extensionProfile === ONE_BYTE_PROFILE) return this.#findOneByte(id);
    if ((this.extensionProfile & 0xfff0) === 0x1000) return this.#findTwoByte(id);
    return false;
  }

  #findOneByte(id: number): boolean {
    const { buffer, extensionsEnd } = this;
    let at = this.extensionsStart;
    while (at < extensionsEnd) {
      const head = buffer[at]!;
      if (head === 0) {
        at += 1;
        continue;
      }
      // Id 15 ends the list: everything after it must be ignored.
      if (head >>> 4 === 15) return false;
      const length = (head & 0x0f) + 1;
      if (at + 1 + length > extensionsEnd) return false;
      if (head >>> 4 === id) {
        this.foundStart = at + 1;
        this.foundLength = length;
        return true;
      }
      at += 1 + length;
    }
    return false;
  }

  #findTwoByte(id: number): boolean {
    const { buffer, extensionsEnd } = this;
    let at = this.extensionsStart;
    while (at < extensionsEnd) {
      const found = buffer[at]!;
      if (found === 0) {
        at += 1;
        continue;
      }
      if (at + 2 > extensionsEnd) return false;
      const length = buffer[at + 1]!;
      if (at + 2 + length > extensionsEnd) return false;
      if (found === id) {
        this.foundStart = at + 2;
        this.foundLength = length;
        return true;
      }
      at += 2 + length;
    }
    return false;
  }

  /**
   * Returns the text of an element (mid, rid, repaired rid; RFC 8852), or undefined. Allocates, so use it for first
   * packets only.
   */
  textExtension(id: number | undefined): string | undefined {
    if (id === undefined || !this.findExtension(id) || this.foundLength === 0) return undefined;
    return this.buffer.toString('latin1', this.foundStart, this.foundStart + this.foundLength);
  }

  /** Returns the transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01), or -1. */
  transportSequence(id: number | undefined): number {
    if (id === undefined || !this.findExtension(id) || this.foundLength < 2) return -1;
    return readU16(this.buffer, this.foundStart);
  }

  /** Returns the audio level byte of RFC 6464: voice flag in bit 7, level 0..127 in -dBov below it; -1 if absent. */
  audioLevel(id: number | undefined): number {
    if (id === undefined || !this.findExtension(id) || this.foundLength < 1) return -1;
    return this.buffer[this.foundStart]!;
  }
}
