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

/**
 * Continues picture id, TL0PICIDX and KEYIDX of one outbound stream at +1 whenever its source switches, and keeps the
 * gaps of loss. The picture id is always sent with 15 bits.
 */
export class PictureNumbering implements PayloadNumbering {
  #newestPictureId = -1;
  #newestTl0 = -1;
  #newestKeyIdx = -1;
  #pictureIdOffset = 0;
  #tl0Offset = 0;
  #keyIdxOffset = 0;
  /** Newest input of a 7-bit source, extended to 15 bits. */
  #widened = -1;

  switchTo(reader: NumberedPicture): void {
    this.#widened = -1;
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
      const pictureId = (this.#widen(reader) + this.#pictureIdOffset) & 0x7fff;
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

function newer(newest: number, value: number, bits: number): number {
  if (newest < 0) return value;
  const shift = 32 - bits;
  return ((value - newest) << shift) >> shift > 0 ? value : newest;
}
