import { BitReader } from './bit-reader.js';
import { readSequenceParameterSet } from './sequence-parameter-set.js';

export interface PictureSize {
  width: number;
  height: number;
}

/** Returns the picture size from a sequence parameter set; undefined when the set is invalid. */
export function pictureSize(sps: Buffer): PictureSize | undefined {
  const read = readSequenceParameterSet(sps);

  return read === undefined ? undefined : { width: read.width, height: read.height };
}

/** Returns the id of a sequence parameter set. */
export function spsId(sps: Buffer): number {
  return new BitReader(sps, 4, 16).ue();
}

/** Returns the id of a picture parameter set. */
export function ppsId(pps: Buffer): number {
  return new BitReader(pps, 1, 16).ue();
}

/** Returns whether a slice is the first of its picture and whether it is bidirectional; section 7.3.3. */
export function sliceStart(slice: Buffer): { first: boolean; bidirectional: boolean } {
  const read = new BitReader(slice, 1, 24);
  const first = read.ue() === 0;

  return { first, bidirectional: read.ue() % 5 === 1 };
}
