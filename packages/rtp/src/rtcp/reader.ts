import { readU16, readU24, readU32 } from '../bytes.js';

/** Packet types, RFC 3550 section 12.1 and RFC 4585 section 6.1. */
export const RtcpType = { SR: 200, RR: 201, SDES: 202, BYE: 203, APP: 204, RTPFB: 205, PSFB: 206, XR: 207 } as const;
/** FMT of RTPFB packets. */
export const RtpFeedback = { NACK: 1, TRANSPORT_CC: 15 } as const;
/** FMT of PSFB packets, RFC 4585 section 6.3, RFC 5104 section 4.3; AFB carries REMB. */
export const PayloadFeedback = { PLI: 1, FIR: 4, AFB: 15 } as const;

const REMB_NAME = 0x52454d42;
const EMPTY = Buffer.alloc(0);

/** One report block, RFC 3550 section 6.4.1. Reused by its reader. */
export interface ReportBlock {
  ssrc: number;
  /** Eighths of a byte: 256 = everything lost since the last report. */
  fractionLost: number;
  /** Signed, because duplicates make it fall. */
  cumulativeLost: number;
  /** Roll-over count in the upper 16 bits. */
  highestSequence: number;
  /** RTP timestamp units. */
  jitter: number;
  /** Middle 32 bits of the last sender report's NTP time; 0 = none. */
  lastSenderReport: number;
  /** 1/65536 s. */
  delaySinceLastSenderReport: number;
}

export function emptyReportBlock(): ReportBlock {
  return {
    ssrc: 0,
    fractionLost: 0,
    cumulativeLost: 0,
    highestSequence: 0,
    jitter: 0,
    lastSenderReport: 0,
    delaySinceLastSenderReport: 0,
  };
}

/** Sender info of an SR, RFC 3550 section 6.4.1. */
export interface SenderInfo {
  ssrc: number;
  ntpSeconds: number;
  ntpFraction: number;
  rtpTimestamp: number;
  packetCount: number;
  octetCount: number;
}

export function emptySenderInfo(): SenderInfo {
  return { ssrc: 0, ntpSeconds: 0, ntpFraction: 0, rtpTimestamp: 0, packetCount: 0, octetCount: 0 };
}

/**
 * Walks the packets of a compound (or reduced-size, RFC 5506) RTCP datagram without creating objects:
 *
 *     reader.open(buffer, start, end);
 *     while (reader.next()) switch (reader.type) { ... }
 *
 * A damaged packet ends the walk and sets `damaged`; the packets before it stay valid. The `read...` methods refer to
 * the current packet and return false or -1 if it is of another kind or too short.
 */
export class RtcpReader {
  buffer: Buffer = EMPTY;
  /** The current packet is `buffer[start, end)`, without padding. */
  start = 0;
  end = 0;
  type = 0;
  /** Report count, source count or feedback message type, depending on `type`. */
  count = 0;
  /** True if the datagram did not end where its last packet said. */
  damaged = false;
  #at = 0;
  #limit = 0;

  open(buffer: Buffer, start = 0, end = buffer.length): void {
    this.buffer = buffer;
    this.#at = Math.max(0, start);
    this.#limit = Math.min(end, buffer.length);
    this.start = this.#at;
    this.end = this.#at;
    this.type = 0;
    this.count = 0;
    this.damaged = false;
  }

  next(): boolean {
    const { buffer } = this;
    const at = this.#at;
    if (at >= this.#limit) return false;
    if (at + 4 > this.#limit) return this.#fail();
    const first = buffer[at]!;
    const packetEnd = at + 4 + readU16(buffer, at + 2) * 4;
    if (first >>> 6 !== 2 || packetEnd > this.#limit) return this.#fail();
    let end = packetEnd;
    if ((first & 0x20) !== 0) {
      const padding = buffer[packetEnd - 1]!;
      if (padding === 0 || at + 4 + padding > packetEnd) return this.#fail();
      end -= padding;
    }
    this.start = at;
    this.end = end;
    this.type = buffer[at + 1]!;
    this.count = first & 0x1f;
    this.#at = packetEnd;
    return true;
  }

  #fail(): false {
    this.damaged = true;
    this.#at = this.#limit;
    this.start = this.#limit;
    this.end = this.#limit;
    this.type = 0;
    this.count = 0;
    return false;
  }

  /** SSRC of the packet's sender, or -1 if the packet is too short to have one. */
  get senderSsrc(): number {
    return this.end - this.start >= 8 ? readU32(this.buffer, this.start + 4) : -1;
  }

  /** Media SSRC of a feedback packet (RTPFB, PSFB), -1 otherwise. */
  get mediaSsrc(): number {
    return this.#isFeedback() ? readU32(this.buffer, this.start + 8) : -1;
  }

  get isNack(): boolean {
    return this.type === RtcpType.RTPFB && this.count === RtpFeedback.NACK && this.#isFeedback();
  }

  get isTransportCc(): boolean {
    return this.type === RtcpType.RTPFB && this.count === RtpFeedback.TRANSPORT_CC && this.#isFeedback();
  }

  get isPli(): boolean {
    return this.type === RtcpType.PSFB && this.count === PayloadFeedback.PLI && this.#isFeedback();
  }

  get isFir(): boolean {
    return this.type === RtcpType.PSFB && this.count === PayloadFeedback.FIR && this.#isFeedback();
  }

  #isFeedback(): boolean {
    return (this.type === RtcpType.RTPFB || this.type === RtcpType.PSFB) && this.end - this.start >= 12;
  }

  /** Reads the sender info of an SR. */
  readSenderInfo(out: SenderInfo): boolean {
    if (this.type !== RtcpType.SR || this.end - this.start < 28) return false;
    const { buffer, start } = this;
    out.ssrc = readU32(buffer, start + 4);
    out.ntpSeconds = readU32(buffer, start + 8);
    out.ntpFraction = readU32(buffer, start + 12);
    out.rtpTimestamp = readU32(buffer, start + 16);
    out.packetCount = readU32(buffer, start + 20);
    out.octetCount = readU32(buffer, start + 24);
    return true;
  }

  /** Reads the report block `index` (from 0) of an SR or RR; returns false if there is none. */
  readReportBlock(index: number, out: ReportBlock): boolean {
    const first = this.type === RtcpType.SR ? 28 : this.type === RtcpType.RR ? 8 : -1;
    if (first < 0 || index >= this.count) return false;
    const { buffer } = this;
    const at = this.start + first + index * 24;
    if (at + 24 > this.end) return false;
    out.ssrc = readU32(buffer, at);
    out.fractionLost = buffer[at + 4]!;
    out.cumulativeLost = (readU24(buffer, at + 5) << 8) >> 8;
    out.highestSequence = readU32(buffer, at + 8);
    out.jitter = readU32(buffer, at + 12);
    out.lastSenderReport = readU32(buffer, at + 16);
    out.delaySinceLastSenderReport = readU32(buffer, at + 20);
    return true;
  }

  /** Calls back for each 16-bit sequence number of a Generic NACK (RFC 4585 section 6.2.1), ascending per entry. */
  forEachNack(visit: (sequence: number) => void): void {
    if (!this.isNack) return;
    const { buffer, end } = this;
    for (let at = this.start + 12; at + 4 <= end; at += 4) {
      const first = readU16(buffer, at);
      visit(first);
      let mask = readU16(buffer, at + 2);
      for (let bit = 1; mask !== 0; bit += 1) {
        if ((mask & 1) !== 0) visit((first + bit) & 0xffff);
        mask >>>= 1;
      }
    }
  }

  /** Calls back for each entry of a FIR (RFC 5104 section 4.3.1) with the requested SSRC and the command number. */
  forEachFir(visit: (ssrc: number, commandSequence: number) => void): void {
    if (!this.isFir) return;
    for (let at = this.start + 12; at + 8 <= this.end; at += 8) {
      visit(readU32(this.buffer, at), this.buffer[at + 4]!);
    }
  }

  /** Returns the bits per second of a REMB (draft-alvestrand-rmcat-remb-03), or -1. */
  readRembBps(): number {
    if (this.type !== RtcpType.PSFB || this.count !== PayloadFeedback.AFB || this.end - this.start < 20) return -1;
    if (readU32(this.buffer, this.start + 12) !== REMB_NAME) return -1;
    const exponent = this.buffer[this.start + 17]! >>> 2;
    const mantissa = readU24(this.buffer, this.start + 17) & 0x3ffff;
    return mantissa * 2 ** exponent;
  }
}
