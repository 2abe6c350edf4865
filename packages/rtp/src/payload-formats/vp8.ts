/** VP8 in RTP, RFC 7741. */
import { readU16 } from '../bytes.js';
import { type OrderedPacket, PART_BYTES } from '../reorder-buffer.js';
import type { RtpView } from '../rtp-view.js';
import { HAS_KEY_IDX, HAS_PICTURE_ID, HAS_TL0, type NumberedPicture, PictureNumbering } from './picture-numbering.js';
import {
  type AssembledFrame,
  EntryPoint,
  type FrameAssembler,
  MAX_PAYLOAD,
  type PacketisedFrame,
  type PayloadFormat,
  completed,
} from './payload-format.js';

/** Limits on one picture. A larger one is an attack, as is one in tiny parts, whose objects outweigh their bytes. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 16_384;

/** The payload descriptor, RFC 7741 section 4.2. */
export class Vp8Reader implements NumberedPicture {
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  /** Bytes of the descriptor. */
  headerLength = 0;
  /** The first byte (X, N, S, PID) and the extension byte (I, L, T, K), which is 0 if absent. */
  first = 0;
  extension = 0;
  /** Picture id, -1 if absent; `pictureIdBits` is 7 or 15. */
  pictureId = -1;
  pictureIdBits = 0;
  /** TL0PICIDX, -1 if absent. */
  tl0PicIdx = -1;
  /** The byte TID | Y | KEYIDX, -1 if absent. */
  layerByte = -1;
  hasKeyIdx = false;
  hasTid = false;
  /** `yes` for the first packet of a key frame, RFC 7741 section 4.3 (P bit of the payload header). */
  entryPoint: EntryPoint = EntryPoint.no;

  get temporalLayer(): number {
    return this.hasTid ? this.layerByte >>> 6 : 0;
  }

  /** Y: the picture refers to the base layer only. */
  get switchesTo(): number {
    return this.hasTid && (this.layerByte & 0x20) !== 0 ? this.layerByte >>> 6 : -1;
  }

  get keyIdx(): number {
    return this.hasKeyIdx ? this.layerByte & 0x1f : -1;
  }

  read(view: RtpView): boolean {
    return this.parse(view.buffer, view.payloadStart, view.payloadEnd);
  }

  /** Returns false if `buffer[start, end)` holds no complete descriptor. */
  parse(buffer: Buffer, start: number, end: number): boolean {
    if (start < 0 || start >= end || end > buffer.length) return false;
    let at = start;
    const first = buffer[at]!;
    at += 1;
    let extension = 0;
    let pictureId = -1;
    let pictureIdBits = 0;
    let tl0 = -1;
    let layerByte = -1;
    if ((first & 0x80) !== 0) {
      if (at >= end) return false;
      extension = buffer[at]!;
      at += 1;
      if ((extension & 0x80) !== 0) {
        if (at >= end) return false;
        if ((buffer[at]! & 0x80) !== 0) {
          if (at + 2 > end) return false;
          pictureId = readU16(buffer, at) & 0x7fff;
          pictureIdBits = 15;
          at += 2;
        } else {
          pictureId = buffer[at]!;
          pictureIdBits = 7;
          at += 1;
        }
      }
      if ((extension & 0x40) !== 0) {
        if (at >= end) return false;
        tl0 = buffer[at]!;
        at += 1;
      }
      if ((extension & 0x30) !== 0) {
        if (at >= end) return false;
        layerByte = buffer[at]!;
        at += 1;
      }
    }
    this.headerLength = at - start;
    this.first = first;
    this.extension = extension;
    this.pictureId = pictureId;
    this.pictureIdBits = pictureIdBits;
    this.tl0PicIdx = tl0;
    this.layerByte = layerByte;
    this.hasTid = (extension & 0x20) !== 0;
    this.hasKeyIdx = (extension & 0x10) !== 0;
    // S = 1 and PID = 0: the frame's first byte follows; its lowest bit is 0 in a key frame.
    const isKeyframeStart = (first & 0x17) === 0x10 && at < end && (buffer[at]! & 1) === 0;
    this.entryPoint = isKeyframeStart ? EntryPoint.yes : EntryPoint.no;
    return true;
  }

  /**
   * Writes the descriptor, at most six bytes. A number that the source has and `numbers` lacks stays as it was read.
   */
  write(target: Buffer, at: number, numbers: number): number {
    target[at] = this.first;
    if ((this.first & 0x80) === 0) return 1;
    target[at + 1] = this.extension;
    let end = at + 2;
    if (this.pictureId >= 0) {
      const value = (numbers & HAS_PICTURE_ID) !== 0 ? (numbers >>> 3) & 0x7fff : this.pictureId;
      target[end] = 0x80 | (value >>> 8);
      target[end + 1] = value;
      end += 2;
    }
    if (this.tl0PicIdx >= 0) {
      target[end] = (numbers & HAS_TL0) !== 0 ? numbers >>> 18 : this.tl0PicIdx;
      end += 1;
    }
    if (this.layerByte >= 0) {
      const isMapped = this.hasKeyIdx && (numbers & HAS_KEY_IDX) !== 0;
      target[end] = isMapped ? (this.layerByte & 0xe0) | ((numbers >>> 26) & 0x1f) : this.layerByte;
      end += 1;
    }
    return end - at;
  }
}

/** Joins the payloads of a frame without their descriptors. */
class Vp8Assembler implements FrameAssembler {
  readonly #reader = new Vp8Reader();
  #parts: Buffer[] = [];
  #bytes = 0;
  #timestamp = -1;
  #key = false;
  #broken = true;
  #waitsForKey = true;

  get needsKeyframe(): boolean {
    return this.#waitsForKey;
  }

  get heldBytes(): number {
    return this.#bytes + this.#parts.length * PART_BYTES;
  }

  gap(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#broken = true;
    this.#waitsForKey = true;
  }

  push(packet: OrderedPacket): readonly AssembledFrame[] {
    let unmarked: AssembledFrame | undefined;
    if (packet.timestamp !== this.#timestamp) {
      // The previous frame had no marker.
      unmarked = this.#complete();
      this.#timestamp = packet.timestamp;
      this.#broken = true;
    }
    const { payload } = packet;
    const reader = this.#reader;
    if (payload.length > 0 && reader.parse(payload, 0, payload.length) && reader.headerLength < payload.length) {
      if ((reader.first & 0x17) === 0x10) {
        this.#broken = false;
        this.#key = reader.entryPoint === EntryPoint.yes;
      }
      if (!this.#broken) this.#add(payload.subarray(reader.headerLength));
    }
    return completed(unmarked, packet.marker ? this.#complete() : undefined);
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > MAX_FRAME_BYTES || this.#parts.length >= MAX_PARTS) this.gap();
    else this.#parts.push(Buffer.from(part));
  }

  #complete(): AssembledFrame | undefined {
    const parts = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    if (parts.length === 0 || this.#broken) {
      return undefined;
    }
    this.#broken = true;
    if (this.#key) this.#waitsForKey = false;
    if (this.#waitsForKey) return undefined;
    return { timestamp: this.#timestamp, key: this.#key, data: Buffer.concat(parts) };
  }
}

/**
 * Splits a frame into packets with a one-byte descriptor, which only distinguishes the first packet from the others.
 */
function packetise(frame: Buffer): PacketisedFrame {
  const payloads: Buffer[] = [];
  for (let at = 0; at < frame.length; at += MAX_PAYLOAD - 1) {
    payloads.push(Buffer.concat([Buffer.from([at === 0 ? 0x10 : 0]), frame.subarray(at, at + MAX_PAYLOAD - 1)]));
  }
  return { key: frame.length > 0 && (frame[0]! & 1) === 0, payloads };
}

export const VP8: PayloadFormat = {
  kind: 'video',
  mimeType: 'video/VP8',
  label: 'VP8',
  clockRate: 90_000,
  onRequest: false,
  offered: { payloadType: 96, rtxPayloadType: 97, parameters: '' },
  reordersPictures: false,
  hasLayers: true,
  hasDescriptors: false,
  obstacle: () => undefined,
  rank: () => 0,
  createReader: () => new Vp8Reader(),
  createNumbering: () => new PictureNumbering({ closesGaps: true }),
  createAssembler: () => new Vp8Assembler(),
  createAnnouncedParts: () => undefined,
  packetise,
};
