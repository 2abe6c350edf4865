import type { PayloadNumbering, PayloadReader } from './payload-format.js';

/** The numbers in the header of a VP8 or VP9 packet (RFC 7741 section 4.2, RFC 9628 section 4.2). */
export interface NumberedPicture extends PayloadReader {
  /** -1 if absent. */
  readonly pictureId: number;
  /** 7 or 15. */
  readonly pictureIdBits: number;
  /** -1 if absent. */
  readonly tl0PicIdx: number;
  readonly hasKeyIdx: boolean;
  readonly keyIdx: number;
}

/** The numbers of a packet in one word: three flags, 15 bits of picture id, 8 of TL0PICIDX, 5 of KEYIDX. */
export const HAS_PICTURE_ID = 1;
export const HAS_TL0 = 2;
export const HAS_KEY_IDX = 4;

/** Pictures left out that are remembered, for numbering late packets. */
const LEFT_OUT_MEMORY = 64;

/**
 * Continues picture id, TL0PICIDX and KEYIDX of one outbound stream at +1 whenever its source switches, and keeps the
 * gaps of loss. The picture id is always sent with 15 bits.
 */
export class PictureNumbering implements PayloadNumbering {
  readonly #closesGaps: boolean;
  #newestPictureId = -1;
  #newestTl0 = -1;
  #newestKeyIdx = -1;
  #pictureIdOffset = 0;
  #tl0Offset = 0;
  #keyIdxOffset = 0;
  /** Newest input of a 7-bit source, extended to 15 bits. */
  #widened = -1;
  /** Newest picture id of the source, sent or left out. */
  #newestInput = -1;
  readonly #leftOut = new Uint16Array(LEFT_OUT_MEMORY);
  #leftOutCount = 0;

  /** `closesGaps`: receivers take a gap in the picture ids for loss, so pictures left out must not make one. */
  constructor({ closesGaps = false } = {}) {
    this.#closesGaps = closesGaps;
  }

  switchTo(reader: NumberedPicture): void {
    this.#widened = -1;
    this.#newestInput = -1;
    this.#leftOutCount = 0;
    if (reader.pictureId >= 0 && this.#newestPictureId >= 0) {
      this.#pictureIdOffset = this.#newestPictureId + 1 - reader.pictureId;
    }
    if (reader.tl0PicIdx >= 0 && this.#newestTl0 >= 0) {
      this.#tl0Offset = this.#newestTl0 + 1 - reader.tl0PicIdx;
    }
    if (reader.hasKeyIdx && this.#newestKeyIdx >= 0) {
      this.#keyIdxOffset = this.#newestKeyIdx + 1 - reader.keyIdx;
    }
  }

  map(reader: NumberedPicture): number {
    let numbers = 0;
    if (reader.pictureId >= 0) {
      const input = this.#widen(reader) & 0x7fff;
      const pictureId = (input + this.#offsetOf(input)) & 0x7fff;
      this.#newestPictureId = newer(this.#newestPictureId, pictureId, 15);
      numbers |= HAS_PICTURE_ID | (pictureId << 3);
    }
    if (reader.tl0PicIdx >= 0) {
      const tl0PicIdx = (reader.tl0PicIdx + this.#tl0Offset) & 0xff;
      this.#newestTl0 = newer(this.#newestTl0, tl0PicIdx, 8);
      numbers |= HAS_TL0 | (tl0PicIdx << 18);
    }
    if (reader.hasKeyIdx) {
      const keyIdx = (reader.keyIdx + this.#keyIdxOffset) & 0x1f;
      this.#newestKeyIdx = newer(this.#newestKeyIdx, keyIdx, 5);
      numbers |= HAS_KEY_IDX | (keyIdx << 26);
    }
    return numbers;
  }

  drop(reader: NumberedPicture): void {
    if (!this.#closesGaps || reader.pictureId < 0) return;
    const input = this.#widen(reader) & 0x7fff;
    if (!this.#isNewest(input)) return;
    this.#newestInput = input;
    this.#pictureIdOffset -= 1;
    this.#leftOut[this.#leftOutCount % LEFT_OUT_MEMORY] = input;
    this.#leftOutCount += 1;
  }

  /** Returns the offset of this picture id: a late one must not count the pictures left out after it. */
  #offsetOf(input: number): number {
    let offset = this.#pictureIdOffset;
    if (this.#isNewest(input)) {
      this.#newestInput = input;
      return offset;
    }
    const kept = Math.min(this.#leftOutCount, LEFT_OUT_MEMORY);
    for (let back = 1; back <= kept; back += 1) {
      if (!isAhead(this.#leftOut[(this.#leftOutCount - back) % LEFT_OUT_MEMORY]!, input)) break;
      offset += 1;
    }
    return offset;
  }

  #isNewest(input: number): boolean {
    return this.#newestInput < 0 || isAhead(input, this.#newestInput);
  }

  #widen(reader: NumberedPicture): number {
    if (reader.pictureIdBits === 15) return reader.pictureId;
    if (this.#widened < 0) {
      this.#widened = reader.pictureId;
      return reader.pictureId;
    }
    const delta = ((reader.pictureId - this.#widened) << 25) >> 25;
    const wide = this.#widened + delta;
    if (delta > 0) this.#widened = wide;
    return wide;
  }
}

/** Returns whether one 15-bit picture id is after another. */
function isAhead(pictureId: number, other: number): boolean {
  return ((pictureId - other) << 17) >> 17 > 0;
}

function newer(newest: number, value: number, bits: number): number {
  if (newest < 0) return value;
  const shift = 32 - bits;
  return ((value - newest) << shift) >> shift > 0 ? value : newest;
}
