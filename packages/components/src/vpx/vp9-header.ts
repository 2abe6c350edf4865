/** The start of VP9 frames: "VP9 Bitstream & Decoding Process Specification" 0.6, section 6.2 and annex B. */
import type { PictureSize } from '../h264/parameter-sets.js';
import { Bits } from './bits.js';

export const FRAME_MARKER = 2;
export const SYNC_CODE = 0x498342;
const RGB = 7;
export const REFERENCES = 3;

export interface Vp9Frame {
  profile: number;
  key: boolean;
  /** Absent if the frame has the size of an earlier one. */
  size?: PictureSize;
}

/** Returns the header of one frame; undefined if it is invalid or cut. */
export function readVp9Frame(frame: Buffer): Vp9Frame | undefined {
  const bits = new Bits(frame);
  const header = readFrame(bits);

  return bits.isCut ? undefined : header;
}

/** Returns the picture size that a picture of VP9 starts with, if it is a key picture. */
export function vp9KeySize(picture: Buffer): PictureSize | undefined {
  const frames = splitSuperframe(picture).map(readVp9Frame);
  if (frames[0]?.key !== true) return undefined;

  // A stream with layers has the largest one last.
  return frames.findLast((frame) => frame?.size !== undefined)?.size;
}

/** Returns the frames of one picture, of which a stream with layers has several (annex B). */
export function splitSuperframe(picture: Buffer): Buffer[] {
  const marker = picture.at(-1) ?? 0;
  const count = (marker & 7) + 1;
  const sizeBytes = ((marker >> 3) & 3) + 1;
  const indexAt = picture.length - 2 - count * sizeBytes;
  if ((marker & 0xe0) !== 0xc0 || indexAt < 0 || picture[indexAt] !== marker) return [picture];
  const frames: Buffer[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    const size = picture.readUIntLE(indexAt + 1 + i * sizeBytes, sizeBytes);
    if (at + size > indexAt) return [picture];
    if (size > 0) frames.push(picture.subarray(at, at + size));
    at += size;
  }

  return frames;
}

function readFrame(bits: Bits): Vp9Frame | undefined {
  if (bits.read(2) !== FRAME_MARKER) return undefined;
  const profile = bits.read(1) + 2 * bits.read(1);
  if (profile === 3) bits.read(1);
  // show_existing_frame
  if (bits.read(1) === 1) return { profile, key: false };
  const key = bits.read(1) === 0;
  const isShown = bits.read(1) === 1;
  const isResilient = bits.read(1) === 1;
  if (key) {
    if (bits.read(24) !== SYNC_CODE) return undefined;
    skipColours(bits, profile);
    return { profile, key, size: readSize(bits) };
  }
  const isIntraOnly = !isShown && bits.read(1) === 1;
  if (!isResilient) bits.read(2);
  if (isIntraOnly) {
    if (bits.read(24) !== SYNC_CODE) return undefined;
    if (profile > 0) skipColours(bits, profile);
    bits.read(8);
    return { profile, key, size: readSize(bits) };
  }
  bits.read(8);
  bits.read(REFERENCES * 4);
  // found_ref: one of the references has the same size.
  for (let i = 0; i < REFERENCES; i++) if (bits.read(1) === 1) return { profile, key };

  return { profile, key, size: readSize(bits) };
}

export function skipColours(bits: Bits, profile: number): void {
  if (profile >= 2) bits.read(1);
  const hasChroma = profile === 1 || profile === 3;
  if (bits.read(3) !== RGB) bits.read(hasChroma ? 4 : 1);
  else if (hasChroma) bits.read(1);
}

export function readSize(bits: Bits): PictureSize {
  return { width: bits.read(16) + 1, height: bits.read(16) + 1 };
}
