import { readU16 } from '../bytes.js';

/** Bound on a rewritten descriptor. */
export const VP8_DESCRIPTOR_MAX = 6;

/** A reusable reader of the VP8 payload descriptor, RFC 7741 section 4.2. */
export class Vp8Descriptor {
  /** Bytes of the descriptor in the packet read. */
  length = 0;
  /** The first byte (X, N, S, PID) and the extension byte (I, L, T, K); the latter 0 when absent. */
  first = 0;
  extension = 0;
  /** Picture id, -1 when absent; `pictureIdBits` is 7 or 15. */
  pictureId = -1;
  pictureIdBits = 0;
  /** TL0PICIDX, -1 when absent. */
  tl0PicIdx = -1;
  /** The byte TID | Y | KEYIDX, -1 when absent. */
  layerByte = -1;
  hasKeyIdx = false;
  hasTid = false;
  /** First packet of a key frame, RFC 7741 section 4.3 (P bit of the payload header). */
  isKeyFrameStart = false;

  get tid(): number {
    return this.hasTid ? this.layerByte >>> 6 : -1;
  }

  get keyIdx(): number {
    return this.hasKeyIdx ? this.layerByte & 0x1f : -1;
  }

  /** Returns false when `buffer[start, end)` holds no complete descriptor. */
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
    this.length = at - start;
    this.first = first;
    this.extension = extension;
    this.pictureId = pictureId;
    this.pictureIdBits = pictureIdBits;
    this.tl0PicIdx = tl0;
    this.layerByte = layerByte;
    this.hasTid = (extension & 0x20) !== 0;
    this.hasKeyIdx = (extension & 0x10) !== 0;
    // S = 1 and PID = 0: the frame's first byte follows; its lowest bit is 0 in a key frame.
    this.isKeyFrameStart = (first & 0x17) === 0x10 && at < end && (buffer[at]! & 1) === 0;
    return true;
  }
}

/**
 * Continues picture id, TL0PICIDX and KEYIDX of one outbound stream at +1 whenever its source switches, and keeps the gaps of
 * loss. The picture id is always sent with 15 bits.
 */
export class Vp8Mapper {
  /** Results of `map`; -1 where the source has no such field. */
  pictureId = -1;
  tl0PicIdx = -1;
  keyIdx = -1;

  #newestPictureId = -1;
  #newestTl0 = -1;
  #newestKeyIdx = -1;
  #pictureIdOffset = 0;
  #tl0Offset = 0;
  #keyIdxOffset = 0;
  /** 7-bit sources: the newest input continued to 15 bits. */
  #widened = -1;

  /** Starts a new source with the packet in `descriptor`: pass it to `map` next. */
  switchTo(descriptor: Vp8Descriptor): void {
    this.#widened = -1;
    if (descriptor.pictureId >= 0 && this.#newestPictureId >= 0) {
      this.#pictureIdOffset = this.#newestPictureId + 1 - descriptor.pictureId;
    }
    if (descriptor.tl0PicIdx >= 0 && this.#newestTl0 >= 0) {
      this.#tl0Offset = this.#newestTl0 + 1 - descriptor.tl0PicIdx;
    }
    if (descriptor.hasKeyIdx && this.#newestKeyIdx >= 0) {
      this.#keyIdxOffset = this.#newestKeyIdx + 1 - descriptor.keyIdx;
    }
  }

  map(descriptor: Vp8Descriptor): void {
    if (descriptor.pictureId >= 0) {
      const wide = this.#widen(descriptor);
      this.pictureId = (wide + this.#pictureIdOffset) & 0x7fff;
      this.#newestPictureId = newer(this.#newestPictureId, this.pictureId, 15);
    } else {
      this.pictureId = -1;
    }
    if (descriptor.tl0PicIdx >= 0) {
      this.tl0PicIdx = (descriptor.tl0PicIdx + this.#tl0Offset) & 0xff;
      this.#newestTl0 = newer(this.#newestTl0, this.tl0PicIdx, 8);
    } else {
      this.tl0PicIdx = -1;
    }
    if (descriptor.hasKeyIdx) {
      this.keyIdx = (descriptor.keyIdx + this.#keyIdxOffset) & 0x1f;
      this.#newestKeyIdx = newer(this.#newestKeyIdx, this.keyIdx, 5);
    } else {
      this.keyIdx = -1;
    }
  }

  #widen(descriptor: Vp8Descriptor): number {
    if (descriptor.pictureIdBits === 15) return descriptor.pictureId;
    if (this.#widened < 0) {
      this.#widened = descriptor.pictureId;
      return descriptor.pictureId;
    }
    const delta = ((descriptor.pictureId - this.#widened) << 25) >> 25;
    const wide = this.#widened + delta;
    if (delta > 0) this.#widened = wide;
    return wide;
  }
}

/**
 * Writes the descriptor with mapped values at `target[at]` and returns its length (at most `VP8_DESCRIPTOR_MAX`). A negative
 * value keeps the corresponding field as it was read.
 */
export function writeVp8Descriptor(
  target: Buffer,
  at: number,
  source: Vp8Descriptor,
  pictureId: number,
  tl0PicIdx: number,
  keyIdx: number,
): number {
  target[at] = source.first;
  if ((source.first & 0x80) === 0) return 1;
  target[at + 1] = source.extension;
  let end = at + 2;
  if (source.pictureId >= 0) {
    const value = pictureId >= 0 ? pictureId : source.pictureId;
    target[end] = 0x80 | (value >>> 8);
    target[end + 1] = value;
    end += 2;
  }
  if (source.tl0PicIdx >= 0) {
    target[end] = tl0PicIdx >= 0 ? tl0PicIdx : source.tl0PicIdx;
    end += 1;
  }
  if (source.layerByte >= 0) {
    target[end] = source.hasKeyIdx && keyIdx >= 0 ? (source.layerByte & 0xe0) | keyIdx : source.layerByte;
    end += 1;
  }
  return end - at;
}

function newer(newest: number, value: number, bits: number): number {
  if (newest < 0) return value;
  const shift = 32 - bits;
  return ((value - newest) << shift) >> shift > 0 ? value : newest;
}
