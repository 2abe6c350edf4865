/** H.264 in RTP, RFC 6184 in packetization-mode 1. Frames are access units with the start codes of Annex B. */
import { readU16 } from '../bytes.js';
import type { OrderedPacket } from '../reorder-buffer.js';
import type { RtpView } from '../rtp-view.js';
import { splitAnnexB, toAnnexB } from './annex-b.js';
import { completed, PART_BYTES } from './completed.js';
import {
  type AssembledFrame,
  EntryPoint,
  type FrameAssembler,
  MAX_PAYLOAD,
  type PayloadFormat,
  type PayloadReader,
} from './payload-format.js';

export const NalType = { slice: 1, idr: 5, sei: 6, sps: 7, pps: 8, aud: 9, stapA: 24, fuA: 28 } as const;

/** Limits on one picture: a larger one is an attack. */
const MAX_ACCESS_UNIT_BYTES = 8 * 1024 * 1024;
const MAX_NALS = 4096;

export const nalType = (nal: Buffer): number => (nal[0] ?? 0) & 0x1f;

/** Returns whether `first_mb_in_slice` of this slice is 0, encoded as a single set bit (ITU-T H.264, 7.3.3 and 9.1). */
const beginsPicture = (slice: Buffer): boolean => ((slice[1] ?? 0) & 0x80) !== 0;

/** Layers above the base arrive as separate streams here; RFC 6190 is not supported. */
class H264Reader implements PayloadReader {
  readonly temporalLayer = 0;
  readonly spatialLayer = 0;
  readonly headerLength = 0;
  entryPoint: EntryPoint = EntryPoint.no;

  /** A slice starts nothing without its parameter sets, which may be in a packet before it. */
  read(view: RtpView): boolean {
    const unit = keyFrameUnit(view);
    this.entryPoint = unit === NalType.sps ? EntryPoint.yes : unit === NalType.idr ? EntryPoint.ifFirst : EntryPoint.no;
    return true;
  }

  write(): number {
    return 0;
  }
}

/**
 * Returns the type of the first IDR slice or sequence parameter set in the packet, alone, inside a STAP-A, or as the
 * first fragment of an FU-A; 0 if there is none. RFC 6184 sections 5.6 to 5.8.
 */
function keyFrameUnit(view: RtpView): number {
  const { buffer, payloadStart, payloadEnd } = view;
  if (payloadStart >= payloadEnd) return 0;
  const type = buffer[payloadStart]! & 0x1f;
  if (type === NalType.idr || type === NalType.sps) return type;
  if (type === NalType.fuA) {
    if (payloadStart + 2 > payloadEnd) return 0;
    const header = buffer[payloadStart + 1]!;
    const inner = header & 0x1f;
    const isStart = (header & 0x80) !== 0;
    return isStart && (inner === NalType.idr || inner === NalType.sps) ? inner : 0;
  }
  if (type !== NalType.stapA) return 0;

  let at = payloadStart + 1;
  while (at + 3 <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size === 0 || at + 2 + size > payloadEnd) return 0;
    const inner = buffer[at + 2]! & 0x1f;
    if (inner === NalType.idr || inner === NalType.sps) return inner;
    at += 2 + size;
  }
  return 0;
}

/**
 * After a loss it returns nothing until the next key picture: decoders show grey for pictures with a missing reference.
 */
class H264Assembler implements FrameAssembler {
  #nals: Buffer[] = [];
  #bytes = 0;
  #timestamp = -1;
  #fragments: Buffer[] = [];
  #broken = false;
  #waitsForKey = true;
  #sps: Buffer | undefined;
  #pps: Buffer | undefined;

  get needsKeyFrame(): boolean {
    return this.#waitsForKey;
  }

  get heldBytes(): number {
    return this.#bytes + (this.#nals.length + this.#fragments.length) * PART_BYTES;
  }

  gap(): void {
    this.#nals = [];
    this.#fragments = [];
    this.#bytes = 0;
    this.#broken = true;
    this.#waitsForKey = true;
  }

  push(packet: OrderedPacket): readonly AssembledFrame[] {
    let unmarked: AssembledFrame | undefined;
    if (packet.timestamp !== this.#timestamp) {
      // The previous picture had no marker.
      unmarked = this.#complete();
      this.#timestamp = packet.timestamp;
      this.#broken = false;
    }
    this.#add(packet.payload);
    return completed(unmarked, packet.marker ? this.#complete() : undefined);
  }

  #add(payload: Buffer): void {
    if (payload.length < 2) return;
    const type = nalType(payload);
    if (type >= 1 && type < NalType.stapA) this.#nal(payload);
    else if (type === NalType.stapA) this.#aggregate(payload);
    else if (type === NalType.fuA) this.#fragment(payload);
    else this.#broken = true;
  }

  #aggregate(payload: Buffer): void {
    let at = 1;
    while (at + 2 < payload.length) {
      const size = payload.readUInt16BE(at);
      if (size === 0 || at + 2 + size > payload.length) {
        this.#broken = true;
        return;
      }
      this.#nal(payload.subarray(at + 2, at + 2 + size));
      at += 2 + size;
    }
  }

  #fragment(payload: Buffer): void {
    if (this.#broken) return;
    const header = payload[1] as number;
    const starts = (header & 0x80) !== 0;
    const ends = (header & 0x40) !== 0;
    if (starts) {
      this.#fragments = [Buffer.from([((payload[0] as number) & 0xe0) | (header & 0x1f)])];
    } else if (this.#fragments.length === 0) {
      // The start is missing, so the rest is not a NAL unit.
      this.#broken = true;
      return;
    }
    this.#bytes += payload.length;
    if (this.#bytes > MAX_ACCESS_UNIT_BYTES || this.#fragments.length > MAX_NALS * 4) {
      this.gap();
      return;
    }
    this.#fragments.push(payload.subarray(2));
    if (!ends) return;
    const nal = Buffer.concat(this.#fragments);
    this.#fragments = [];
    this.#nal(nal);
  }

  #nal(nal: Buffer): void {
    const type = nalType(nal);
    if (type === NalType.sps) this.#sps = Buffer.from(nal);
    if (type === NalType.pps) this.#pps = Buffer.from(nal);
    // The rest of a broken picture is useless.
    if (this.#broken) return;
    this.#bytes += nal.length;
    if (this.#bytes > MAX_ACCESS_UNIT_BYTES || this.#nals.length >= MAX_NALS) {
      this.gap();
      return;
    }
    if (type !== NalType.aud) this.#nals.push(Buffer.from(nal));
  }

  #complete(): AssembledFrame | undefined {
    const nals = this.#nals;
    const broken = this.#broken || this.#fragments.length > 0;
    this.#nals = [];
    this.#fragments = [];
    this.#bytes = 0;
    if (broken) {
      this.#waitsForKey = true;
      return undefined;
    }
    const types = nals.map(nalType);
    const key = types.includes(NalType.idr);
    // Parameter sets alone are not a picture; remember them for the next one.
    if (!key && !types.includes(NalType.slice)) return undefined;
    // After a loss, a key picture without its first slices looks complete.
    if (this.#waitsForKey && !nals.some((nal) => nalType(nal) === NalType.idr && beginsPicture(nal))) return undefined;
    if (key) {
      if (this.#sps === undefined || this.#pps === undefined) return undefined;
      if (!types.includes(NalType.pps)) nals.unshift(this.#pps);
      if (!types.includes(NalType.sps)) nals.unshift(this.#sps);
      this.#waitsForKey = false;
    }
    return { timestamp: this.#timestamp, key, data: toAnnexB(nals) };
  }
}

/**
 * Returns the RTP payloads of one access unit in order; the last one gets the marker. `maxBytes` limits each payload.
 */
export function packetiseH264(nals: readonly Buffer[], maxBytes = MAX_PAYLOAD): Buffer[] {
  const payloads: Buffer[] = [];
  let small: Buffer[] = [];
  let smallBytes = 1;
  const flush = () => {
    if (small.length === 1) payloads.push(small[0] as Buffer);
    if (small.length > 1) payloads.push(stapA(small));
    small = [];
    smallBytes = 1;
  };
  for (const nal of nals) {
    if (nal.length === 0) continue;
    if (nal.length > maxBytes) {
      flush();
      payloads.push(...fuA(nal, maxBytes));
      continue;
    }
    if (smallBytes + 2 + nal.length > maxBytes) flush();
    small.push(nal);
    smallBytes += 2 + nal.length;
  }
  flush();
  return payloads;
}

function stapA(nals: readonly Buffer[]): Buffer {
  const importance = Math.max(...nals.map((nal) => (nal[0] as number) & 0x60));
  const out = Buffer.alloc(1 + nals.reduce((sum, nal) => sum + 2 + nal.length, 0));
  out[0] = importance | NalType.stapA;
  let at = 1;
  for (const nal of nals) {
    at = out.writeUInt16BE(nal.length, at);
    at += nal.copy(out, at);
  }
  return out;
}

function fuA(nal: Buffer, maxBytes: number): Buffer[] {
  const room = maxBytes - 2;
  const out: Buffer[] = [];
  const first = nal[0] as number;
  for (let at = 1; at < nal.length; at += room) {
    const end = Math.min(nal.length, at + room);
    const header = (at === 1 ? 0x80 : 0) | (end === nal.length ? 0x40 : 0) | (first & 0x1f);
    out.push(Buffer.concat([Buffer.from([(first & 0xe0) | NalType.fuA, header]), nal.subarray(at, end)]));
  }
  return out;
}

export const H264: PayloadFormat = {
  clockRate: 90_000,
  reordersPictures: true,
  createReader: () => new H264Reader(),
  createNumbering: () => undefined,
  createAssembler: () => new H264Assembler(),
  packetise: (frame) => {
    const nals = splitAnnexB(frame).filter((nal) => nalType(nal) !== NalType.aud);
    return { key: nals.some((nal) => nalType(nal) === NalType.idr), payloads: packetiseH264(nals) };
  },
};
