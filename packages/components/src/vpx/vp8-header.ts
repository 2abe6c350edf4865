import type { PictureSize } from '../h264/parameter-sets.js';

const START_CODE = Buffer.from([0x9d, 0x01, 0x2a]);
const HEADER_BYTES = 10;
/** The upper two bits of each side ask players to scale the picture. */
const SIDE = 0x3fff;

/**
 * Returns the picture size that a VP8 key frame announces, RFC 6386 section 9.1; undefined for other frames, and for
 * one without pixels.
 */
export function vp8KeySize(frame: Buffer): PictureSize | undefined {
  const isKey = frame.length >= HEADER_BYTES && (frame[0]! & 1) === 0;
  if (!isKey || !frame.subarray(3, 6).equals(START_CODE)) return undefined;
  const [width, height] = [frame.readUInt16LE(6) & SIDE, frame.readUInt16LE(8) & SIDE];

  return width === 0 || height === 0 ? undefined : { width, height };
}
