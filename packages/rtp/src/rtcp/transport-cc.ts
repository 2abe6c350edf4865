import { readU16, readU24, readU32, writeU16, writeU24, writeU32 } from '../bytes.js';
import { SequenceUnwrapper } from '../unwrap.js';
import type { RtcpReader } from './reader.js';
import { RtcpType, RtpFeedback } from './reader.js';
import type { RtcpWriter } from './writer.js';

/** Limit on the packets that one feedback may cover: seconds of a very fast stream. */
const TRANSPORT_CC_MAX_PACKETS = 4096;
const DELTA_US = 250;
/** The reference time counts units of 64 ms in 24 bits. */
const REFERENCE_US = 64_000;
const HEADER = 20;
/** A packet that was overtaken longer ago is not reported, ms: its sender has already counted it as lost. */
const LATE_MS = 500;

/**
 * One parsed transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1), reused by its
 * reader: `arrivalsMs[i]` is when packet `baseSequence + i` arrived on the *receiver's* clock, or NaN if it did not.
 */
export class TransportCcFeedback {
  senderSsrc = 0;
  mediaSsrc = 0;
  /** 16-bit transport sequence number of the first packet covered. */
  baseSequence = 0;
  packetCount = 0;
  /** Rises by one with each feedback, 8 bits; a jump means that a feedback was lost. */
  feedbackCount = 0;
  /** Receiver clock time that the deltas start from; wraps after 12.4 days. */
  referenceTimeMs = 0;
  received = 0;
  readonly arrivalsMs = new Float64Array(TRANSPORT_CC_MAX_PACKETS);
  readonly #symbols = new Uint8Array(TRANSPORT_CC_MAX_PACKETS);

  /**
   * Returns how many packets the reader's current packet claims to cover, which is the cost of reading it; 0 for other
   * packets.
   */
  static claim(reader: RtcpReader): number {
    if (!reader.isTransportCc || reader.end - reader.start < HEADER) return 0;
    return readU16(reader.buffer, reader.start + 14);
  }

  /** Reads the reader's current packet; returns false unless it is a well-formed feedback of at most 4,096 packets. */
  parse(reader: RtcpReader): boolean {
    const { buffer, start, end } = reader;
    const count = TransportCcFeedback.claim(reader);
    if (count === 0 || count > TRANSPORT_CC_MAX_PACKETS) return false;
    let at = this.#readChunks(buffer, start + HEADER, end, count);
    if (at < 0) return false;

    // Signed 24 bits: the clock's zero is arbitrary, so the time may be negative.
    let timeUs = ((readU24(buffer, start + 16) << 8) >> 8) * REFERENCE_US;
    this.referenceTimeMs = timeUs / 1000;
    let received = 0;
    for (let i = 0; i < count; i += 1) {
      const symbol = this.#symbols[i]!;
      if (symbol === 1) {
        if (at + 1 > end) return false;
        timeUs += buffer[at]! * DELTA_US;
        at += 1;
      } else if (symbol === 2) {
        if (at + 2 > end) return false;
        timeUs += ((readU16(buffer, at) << 16) >> 16) * DELTA_US;
        at += 2;
      } else {
        this.arrivalsMs[i] = Number.NaN;
        continue;
      }
      this.arrivalsMs[i] = timeUs / 1000;
      received += 1;
    }
    this.senderSsrc = readU32(buffer, start + 4);
    this.mediaSsrc = readU32(buffer, start + 8);
    this.baseSequence = readU16(buffer, start + 12);
    this.packetCount = count;
    this.feedbackCount = buffer[start + 19]!;
    this.received = received;
    return true;
  }

  /** Fills the symbols of `count` packets; returns the offset of the deltas, or -1. */
  #readChunks(buffer: Buffer, start: number, end: number, count: number): number {
    let at = start;
    let done = 0;
    while (done < count) {
      if (at + 2 > end) return -1;
      const chunk = readU16(buffer, at);
      at += 2;
      if ((chunk & 0x8000) === 0) {
        const symbol = (chunk >>> 13) & 3;
        const run = Math.min(chunk & 0x1fff, count - done);
        // An empty run would loop forever.
        if (symbol === 3 || run === 0) return -1;
        this.#symbols.fill(symbol, done, done + run);
        done += run;
      } else if ((chunk & 0x4000) === 0) {
        for (let bit = 13; bit >= 0 && done < count; bit -= 1, done += 1) this.#symbols[done] = (chunk >>> bit) & 1;
      } else {
        for (let bit = 12; bit >= 0 && done < count; bit -= 2, done += 1) {
          const symbol = (chunk >>> bit) & 3;
          if (symbol === 3) return -1;
          this.#symbols[done] = symbol;
        }
      }
    }
    return at;
  }
}

interface TransportCcRecorderOptions {
  senderSsrc: number;
  /** Interval between feedbacks; 50..100 ms. */
  intervalMs?: number;
}

/**
 * Records the arrival of all packets of one transport that carry a transport-wide sequence number, and builds the
 * feedback for their sender. If a packet arrives after being reported missing, the next feedback starts with it, as in
 * libwebrtc: senders derive loss from it.
 */
export class TransportCcRecorder {
  readonly #senderSsrc: number;
  readonly #intervalMs: number;
  readonly #unwrapper = new SequenceUnwrapper();
  /** Arrivals of the newest packets in ticks of 250 us, by unwrapped sequence modulo the size; -1 = not arrived. */
  readonly #arrivals = new Float64Array(TRANSPORT_CC_MAX_PACKETS).fill(-1);
  /** Where the next feedback starts, unwrapped; -1 before the first packet. */
  #next = -1;
  #newest = -1;
  #lastSentAtMs = -1;
  #feedbackCount = 0;
  /** Missing packets up to this number were overtaken too long ago. */
  #tooLate = -1;
  /** True if a packet has arrived since the last feedback. */
  #hasNews = false;

  constructor(options: TransportCcRecorderOptions) {
    this.#senderSsrc = options.senderSsrc;
    this.#intervalMs = options.intervalMs ?? 60;
  }

  /** Records the arrival of this 16-bit transport sequence number. */
  record(sequence: number, nowMs: number): void {
    const unwrapped = this.#unwrapper.unwrap(sequence);
    const size = this.#arrivals.length;
    if (this.#next < 0 || unwrapped - this.#next >= size) {
      // The first packet, or a jump that no feedback could cover: start over.
      this.#arrivals.fill(-1);
      this.#next = unwrapped;
      this.#newest = unwrapped;
      if (this.#lastSentAtMs < 0) this.#lastSentAtMs = nowMs;
    }
    if (unwrapped <= this.#newest - size) return;
    for (; this.#newest < unwrapped; this.#newest += 1) this.#arrivals[(this.#newest + 1) % size] = -1;
    if (this.#arrivals[unwrapped % size]! >= 0) return;
    const arrival = Math.round((nowMs * 1000) / DELTA_US);
    if (unwrapped < this.#next) {
      if (unwrapped <= this.#tooLate) return;
      const after = this.#arrivedAfter(unwrapped);
      if ((arrival - this.#arrivals[after % size]!) * DELTA_US > LATE_MS * 1000) {
        // Everything in this gap is too late as well. Remember that, so that many late packets search each gap only
        // once.
        this.#tooLate = after;
        return;
      }
      this.#next = unwrapped;
    }
    this.#arrivals[unwrapped % size] = arrival;
    this.#hasNews = true;
  }

  /** Returns the first packet that overtook this one. */
  #arrivedAfter(sequence: number): number {
    let after = sequence + 1;
    while (this.#arrivals[after % this.#arrivals.length]! < 0) after += 1;
    return after;
  }

  /** Returns whether a feedback is due and there is something to report. */
  isDue(nowMs: number): boolean {
    return this.#hasNews && nowMs - this.#lastSentAtMs >= this.#intervalMs;
  }

  /**
   * Appends one feedback packet to the compound. Returns false if nothing is pending or the writer has no room. Call it
   * until it returns false: a feedback ends early when it is full, or when two arrivals are too far apart for a 16-bit
   * delta.
   */
  write(writer: RtcpWriter, mediaSsrc: number, nowMs: number): boolean {
    if (!this.#hasNews) return false;
    const size = this.#arrivals.length;
    // Require room for the header, chunks and deltas of at least a few packets.
    const budget = writer.remaining - HEADER - 4;
    if (budget < 16) return false;

    const base = this.#next;
    let first = base;
    while (this.#arrivals[first % size]! < 0) first += 1;
    const reference = Math.floor((this.#arrivals[first % size]! * DELTA_US) / REFERENCE_US);
    let previous = (reference * REFERENCE_US) / DELTA_US;
    let end = base;
    let deltaBytes = 0;
    for (let sequence = base; sequence <= this.#newest; sequence += 1) {
      const arrival = this.#arrivals[sequence % size]!;
      let bytes = 0;
      if (arrival >= 0) {
        const delta = arrival - previous;
        if (delta < -32768 || delta > 32767) break;
        bytes = delta >= 0 && delta <= 255 ? 1 : 2;
      }
      // Two-bit vectors of seven packets are the least compact chunks we write.
      const chunkBytes = Math.ceil((sequence - base + 1) / 7) * 2;
      if (chunkBytes + deltaBytes + bytes > budget) break;
      deltaBytes += bytes;
      if (arrival >= 0) previous = arrival;
      end = sequence + 1;
    }
    this.#build(writer, { base, end, reference, mediaSsrc });
    this.#next = end;
    this.#hasNews = end <= this.#newest;
    this.#lastSentAtMs = nowMs;
    return true;
  }

  #build(writer: RtcpWriter, range: { base: number; end: number; reference: number; mediaSsrc: number }): void {
    const { base, end } = range;
    const size = this.#arrivals.length;
    const start = writer.length;
    const { buffer } = writer;

    // First pass: symbols and deltas. The deltas are written after the longest possible chunks and moved up later.
    const symbols = this.#symbols;
    const deltasAt = start + HEADER + Math.ceil((end - base) / 7) * 2;
    let deltaEnd = deltasAt;
    let previous = (range.reference * REFERENCE_US) / DELTA_US;
    for (let sequence = base; sequence < end; sequence += 1) {
      const arrival = this.#arrivals[sequence % size]!;
      if (arrival < 0) {
        symbols[sequence - base] = 0;
        continue;
      }
      const delta = arrival - previous;
      previous = arrival;
      if (delta >= 0 && delta <= 255) {
        symbols[sequence - base] = 1;
        buffer[deltaEnd] = delta;
        deltaEnd += 1;
      } else {
        symbols[sequence - base] = 2;
        writeU16(buffer, deltaEnd, delta);
        deltaEnd += 2;
      }
    }
    const chunksEnd = writeChunks(buffer, start + HEADER, symbols, end - base);
    buffer.copyWithin(chunksEnd, deltasAt, deltaEnd);
    let bodyEnd = chunksEnd + (deltaEnd - deltasAt);
    const padding = (4 - ((bodyEnd - start) & 3)) & 3;
    for (let i = 0; i < padding; i += 1) buffer[bodyEnd + i] = i === padding - 1 ? padding : 0;
    bodyEnd += padding;

    const at = writer.packet(RtpFeedback.TRANSPORT_CC, RtcpType.RTPFB, bodyEnd - start);
    if (padding > 0) buffer[at] = buffer[at]! | 0x20;
    writeU32(buffer, at + 4, this.#senderSsrc);
    writeU32(buffer, at + 8, range.mediaSsrc);
    writeU16(buffer, at + 12, base % 65536);
    writeU16(buffer, at + 14, end - base);
    writeU24(buffer, at + 16, range.reference % 16777216);
    buffer[at + 19] = this.#feedbackCount;
    this.#feedbackCount = (this.#feedbackCount + 1) & 0xff;
  }

  readonly #symbols = new Uint8Array(TRANSPORT_CC_MAX_PACKETS);
}

/** Writes status chunks: runs for long runs, otherwise one-bit or two-bit vectors. Returns their end. */
function writeChunks(buffer: Buffer, start: number, symbols: Uint8Array, count: number): number {
  let at = start;
  let done = 0;
  while (done < count) {
    const symbol = symbols[done]!;
    let run = 1;
    while (done + run < count && run < 0x1fff && symbols[done + run] === symbol) run += 1;
    if (run >= 7 || done + run === count) {
      writeU16(buffer, at, (symbol << 13) | run);
      at += 2;
      done += run;
      continue;
    }
    // A one-bit vector covers 14 packets and has no large deltas.
    const ahead = Math.min(14, count - done);
    let small = 0;
    while (small < ahead && symbols[done + small] !== 2) small += 1;
    let chunk: number;
    if (small === ahead) {
      chunk = 0x8000;
      for (let i = 0; i < ahead; i += 1) chunk |= symbols[done + i]! << (13 - i);
      done += ahead;
    } else {
      chunk = 0xc000;
      for (let i = 0; i < 7 && done + i < count; i += 1) chunk |= symbols[done + i]! << (12 - i * 2);
      done += Math.min(7, count - done);
    }
    writeU16(buffer, at, chunk);
    at += 2;
  }
  return at;
}
