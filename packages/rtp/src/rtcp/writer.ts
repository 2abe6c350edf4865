import { writeU16, writeU24, writeU32 } from '../bytes.js';
import { RtpError } from '../errors.js';
import type { ReportBlock, SenderInfo } from './reader.js';
import { PayloadFeedback, RtcpType, RtpFeedback } from './reader.js';

/** 18 bits of mantissa and 6 of exponent, draft-alvestrand-rmcat-remb-03 section 2.2. */
const MAX_REMB_MANTISSA = 2 ** 18 - 1;
const MAX_REMB_BPS = MAX_REMB_MANTISSA * 2 ** 63;

/**
 * Builds compound RTCP in its own buffer. Each method appends one packet; `bytes()` is the datagram so far, valid until
 * `reset`. The methods throw RtpError NO_ROOM, and add nothing, if a packet does not fit.
 */
export class RtcpWriter {
  readonly buffer: Buffer;
  #length = 0;

  constructor(capacity = 1200) {
    this.buffer = Buffer.alloc(capacity);
  }

  get length(): number {
    return this.#length;
  }

  get remaining(): number {
    return this.buffer.length - this.#length;
  }

  reset(): this {
    this.#length = 0;
    return this;
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.#length);
  }

  /** Appends a sender report with at most 31 blocks. */
  senderReport(info: SenderInfo, blocks: readonly ReportBlock[] = []): this {
    const at = this.#packet(blocks.length, RtcpType.SR, 28 + blocks.length * 24);
    const { buffer } = this;
    writeU32(buffer, at + 4, info.ssrc);
    writeU32(buffer, at + 8, info.ntpSeconds);
    writeU32(buffer, at + 12, info.ntpFraction);
    writeU32(buffer, at + 16, info.rtpTimestamp);
    writeU32(buffer, at + 20, info.packetCount);
    writeU32(buffer, at + 24, info.octetCount);
    this.#blocks(at + 28, blocks);
    return this;
  }

  receiverReport(senderSsrc: number, blocks: readonly ReportBlock[] = []): this {
    const at = this.#packet(blocks.length, RtcpType.RR, 8 + blocks.length * 24);
    writeU32(this.buffer, at + 4, senderSsrc);
    this.#blocks(at + 8, blocks);
    return this;
  }

  /** Appends an SDES with the CNAME of one source, truncated to 255 bytes. RFC 3550 section 6.5. */
  sdes(ssrc: number, cname: string): this {
    const text = Buffer.from(cname, 'utf8').subarray(0, 255);
    // SSRC, item header, text, and at least one null byte up to a 32-bit boundary.
    const chunk = Math.ceil((4 + 2 + text.length + 1) / 4) * 4;
    const at = this.#packet(1, RtcpType.SDES, 4 + chunk);
    this.buffer.fill(0, at + 4, at + 4 + chunk);
    writeU32(this.buffer, at + 4, ssrc);
    this.buffer[at + 8] = 1;
    this.buffer[at + 9] = text.length;
    text.copy(this.buffer, at + 10);
    return this;
  }

  pli(senderSsrc: number, mediaSsrc: number): this {
    const at = this.#packet(PayloadFeedback.PLI, RtcpType.PSFB, 12);
    writeU32(this.buffer, at + 4, senderSsrc);
    writeU32(this.buffer, at + 8, mediaSsrc);
    return this;
  }

  /** Appends a FIR. `commandSequence` rises by one per request; repetitions keep it. RFC 5104 section 4.3.1. */
  fir(senderSsrc: number, mediaSsrc: number, commandSequence: number): this {
    const at = this.#packet(PayloadFeedback.FIR, RtcpType.PSFB, 20);
    writeU32(this.buffer, at + 4, senderSsrc);
    writeU32(this.buffer, at + 8, 0);
    writeU32(this.buffer, at + 12, mediaSsrc);
    writeU32(this.buffer, at + 16, (commandSequence & 0xff) << 24);
    return this;
  }

  /**
   * Appends a Generic NACK for the first `count` of `sequences` (ascending, may be unwrapped). Returns how many fit;
   * the others need another datagram.
   */
  nack(senderSsrc: number, mediaSsrc: number, sequences: ArrayLike<number>, count = sequences.length): number {
    if (count === 0) return 0;
    const at = this.#packet(RtpFeedback.NACK, RtcpType.RTPFB, 16);
    const { buffer } = this;
    writeU32(buffer, at + 4, senderSsrc);
    writeU32(buffer, at + 8, mediaSsrc);
    let entry = at + 12;
    let first = sequences[0]!;
    let mask = 0;
    let done = 1;
    for (; done < count; done += 1) {
      const distance = sequences[done]! - first;
      if (distance >= 1 && distance <= 16) {
        mask |= 1 << (distance - 1);
        continue;
      }
      if (entry + 8 > buffer.length) break;
      writeU16(buffer, entry, first % 65536);
      writeU16(buffer, entry + 2, mask);
      entry += 4;
      first = sequences[done]!;
      mask = 0;
    }
    writeU16(buffer, entry, first % 65536);
    writeU16(buffer, entry + 2, mask);
    this.#length = entry + 4;
    writeU16(buffer, at + 2, (this.#length - at) / 4 - 1);
    return done;
  }

  /**
   * Appends a REMB (draft-alvestrand-rmcat-remb-03). A NaN or negative bitrate is written as 0; one that exceeds the
   * format, including `Infinity`, as the largest representable value.
   */
  remb(senderSsrc: number, bitrateBps: number, ssrcs: readonly number[]): this {
    const at = this.#packet(PayloadFeedback.AFB, RtcpType.PSFB, 20 + ssrcs.length * 4);
    const { buffer } = this;
    // Halving Infinity never ends, so clamp before the loop, which then runs at most 63 times.
    let mantissa = bitrateBps > 0 ? Math.floor(Math.min(bitrateBps, MAX_REMB_BPS)) : 0;
    let exponent = 0;
    while (mantissa > MAX_REMB_MANTISSA) {
      mantissa = Math.floor(mantissa / 2);
      exponent += 1;
    }
    writeU32(buffer, at + 4, senderSsrc);
    writeU32(buffer, at + 8, 0);
    writeU32(buffer, at + 12, 0x52454d42);
    buffer[at + 16] = ssrcs.length;
    writeU24(buffer, at + 17, (exponent << 18) | mantissa);
    for (let i = 0; i < ssrcs.length; i += 1) writeU32(buffer, at + 20 + i * 4, ssrcs[i]!);
    return this;
  }

  /**
   * Reserves `length` bytes (a multiple of 4) for a packet built elsewhere, writes its RTCP header and returns its
   * offset.
   */
  packet(count: number, type: number, length: number): number {
    return this.#packet(count, type, length);
  }

  #packet(count: number, type: number, length: number): number {
    const at = this.#length;
    if (count > 31) throw new RtpError('OUT_OF_RANGE', `an RTCP packet counts at most 31 items, got ${count}`);
    if (at + length > this.buffer.length) {
      throw new RtpError(
        'NO_ROOM',
        `an RTCP packet of ${length} bytes does not fit into the remaining ${this.remaining}`,
      );
    }
    this.buffer[at] = 0x80 | count;
    this.buffer[at + 1] = type;
    writeU16(this.buffer, at + 2, length / 4 - 1);
    this.#length = at + length;
    return at;
  }

  #blocks(start: number, blocks: readonly ReportBlock[]): void {
    let at = start;
    for (const block of blocks) {
      writeU32(this.buffer, at, block.ssrc);
      this.buffer[at + 4] = block.fractionLost;
      writeU24(this.buffer, at + 5, Math.max(-0x800000, Math.min(0x7fffff, block.cumulativeLost)));
      writeU32(this.buffer, at + 8, block.highestSequence);
      writeU32(this.buffer, at + 12, block.jitter);
      writeU32(this.buffer, at + 16, block.lastSenderReport);
      writeU32(this.buffer, at + 20, block.delaySinceLastSenderReport);
      at += 24;
    }
  }
}
