/** VP9 in RTP, RFC 9628. */
import { readU16 } from '../bytes.js';
import type { RtpView } from '../rtp-view.js';
import { FORWARDED_ONLY } from './forwarded-only.js';
import { EntryPoint, formatParameters, type PayloadFormat } from './payload-format.js';
import { HAS_PICTURE_ID, HAS_TL0, type NumberedPicture, PictureNumbering } from './picture-numbering.js';
import { Vp9Assembler } from './vp9-assembler.js';

/** Most reference indices of one packet (section 4.2, P_DIFF). */
const MAX_REFERENCES = 3;

/** The payload descriptor, section 4.2. */
export class Vp9Reader implements NumberedPicture {
  readonly hasKeyIdx = false;
  readonly keyIdx = -1;
  /** Bytes up to TL0PICIDX. Reference indices are relative, so they and the scalability structure stay as they are. */
  headerLength = 0;
  /** Bytes before the data: the whole descriptor. */
  descriptorLength = 0;
  /** The byte I | P | L | F | B | E | V | Z. */
  first = 0;
  /** Picture id, -1 if absent; `pictureIdBits` is 7 or 15. */
  pictureId = -1;
  pictureIdBits = 0;
  /** The byte TID | U | SID | D, -1 if absent. */
  layerByte = -1;
  /** TL0PICIDX, -1 if absent. */
  tl0PicIdx = -1;
  /** `yes` for the first packet of a picture that refers to none before it. */
  entryPoint: EntryPoint = EntryPoint.no;

  get temporalLayer(): number {
    return this.layerByte < 0 ? 0 : this.layerByte >>> 5;
  }

  get spatialLayer(): number {
    return this.layerByte < 0 ? 0 : (this.layerByte >>> 1) & 7;
  }

  /** B: the packet starts the frame of a layer. */
  get startsLayer(): boolean {
    return (this.first & 0x08) !== 0;
  }

  get endsLayer(): boolean {
    return (this.first & 0x04) !== 0;
  }

  /** U: no later picture of an upper layer refers to one of such a layer before this picture. */
  get switchesTo(): number {
    return this.layerByte >= 0 && (this.layerByte & 0x10) !== 0 ? this.temporalLayer : -1;
  }

  read(view: RtpView): boolean {
    return this.parse(view.buffer, view.payloadStart, view.payloadEnd);
  }

  /** Returns false if `buffer[start, end)` holds no complete descriptor with data after it. */
  parse(buffer: Buffer, start: number, end: number): boolean {
    if (start < 0 || start >= end || end > buffer.length) return false;
    const first = buffer[start]!;
    const isFlexible = (first & 0x10) !== 0;
    let at = start + 1;
    let pictureId = -1;
    let pictureIdBits = 0;
    let layerByte = -1;
    let tl0 = -1;
    if ((first & 0x80) !== 0) {
      if (at >= end) return false;
      pictureIdBits = (buffer[at]! & 0x80) === 0 ? 7 : 15;
      if (pictureIdBits === 15 && at + 2 > end) return false;
      pictureId = pictureIdBits === 7 ? buffer[at]! : readU16(buffer, at) & 0x7fff;
      at += pictureIdBits === 7 ? 1 : 2;
    }
    if ((first & 0x20) !== 0) {
      if (at >= end) return false;
      layerByte = buffer[at]!;
      at += 1;
      if (!isFlexible) {
        if (at >= end) return false;
        tl0 = buffer[at]!;
        at += 1;
      }
    }
    const headerLength = at - start;
    const isInter = (first & 0x40) !== 0;
    if (isFlexible && isInter) at = skipReferences(buffer, at, end);
    if (at >= 0 && (first & 0x02) !== 0) at = skipStructure(buffer, at, end);
    if (at < 0 || at >= end) return false;

    this.headerLength = headerLength;
    this.descriptorLength = at - start;
    this.first = first;
    this.pictureId = pictureId;
    this.pictureIdBits = pictureIdBits;
    this.layerByte = layerByte;
    this.tl0PicIdx = tl0;
    // The picture starts with the frame of its lowest layer.
    const startsKeyPicture = !isInter && this.startsLayer && this.spatialLayer === 0;
    this.entryPoint = startsKeyPicture ? EntryPoint.yes : EntryPoint.no;
    return true;
  }

  /** Writes at most five bytes. A number that the source has and `numbers` lacks stays as it was read. */
  write(target: Buffer, at: number, numbers: number): number {
    target[at] = this.first;
    let end = at + 1;
    if (this.pictureId >= 0) {
      const value = (numbers & HAS_PICTURE_ID) !== 0 ? (numbers >>> 3) & 0x7fff : this.pictureId;
      target[end] = 0x80 | (value >>> 8);
      target[end + 1] = value;
      end += 2;
    }
    if (this.layerByte >= 0) {
      target[end] = this.layerByte;
      end += 1;
    }
    if (this.tl0PicIdx >= 0) {
      target[end] = (numbers & HAS_TL0) !== 0 ? numbers >>> 18 : this.tl0PicIdx;
      end += 1;
    }
    return end - at;
  }
}

/** Returns the offset after the reference indices, or -1 if they are incomplete or too many. */
function skipReferences(buffer: Buffer, start: number, end: number): number {
  for (let i = 0; i < MAX_REFERENCES; i += 1) {
    const at = start + i;
    if (at >= end) return -1;
    // N: another index follows.
    if ((buffer[at]! & 1) === 0) return at + 1;
  }
  return -1;
}

/** Returns the offset after the scalability structure (section 4.2.1), or -1 if it is incomplete. */
function skipStructure(buffer: Buffer, start: number, end: number): number {
  if (start >= end) return -1;
  const first = buffer[start]!;
  let at = start + 1;
  // Y: a width and a height for each spatial layer.
  if ((first & 0x10) !== 0) at += ((first >>> 5) + 1) * 4;
  if ((first & 0x08) === 0) return at <= end ? at : -1;
  if (at >= end) return -1;
  const pictures = buffer[at]!;
  at += 1;
  for (let i = 0; i < pictures; i += 1) {
    if (at >= end) return -1;
    at += 1 + ((buffer[at]! >>> 2) & 3);
  }
  return at <= end ? at : -1;
}

/** Only profile 0 (4:2:0, 8 bits) is decoded by every receiver of VP9 (section 6). */
function obstacle(parameters: string): string | undefined {
  const profile = formatParameters(parameters).get('profile-id') ?? '0';

  return profile === '0' ? undefined : `profile-id ${profile}`;
}

export const VP9: PayloadFormat = {
  ...FORWARDED_ONLY,
  kind: 'video',
  mimeType: 'video/VP9',
  label: 'VP9 of profile 0',
  clockRate: 90_000,
  offered: { payloadType: 100, rtxPayloadType: 101, parameters: 'profile-id=0' },
  reordersPictures: false,
  hasLayers: true,
  hasDescriptors: false,
  obstacle,
  rank: (parameters) => (obstacle(parameters) === undefined ? 1 : 0),
  createReader: () => new Vp9Reader(),
  createNumbering: () => new PictureNumbering(),
  createAssembler: () => new Vp9Assembler(new Vp9Reader()),
};
