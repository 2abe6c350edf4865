import { BitReader } from './bit-reader.js';

/** Profiles whose sequence parameter sets describe chroma, ITU-T H.264 section 7.3.2.1.1. */
const CHROMA_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
const MAX_SIDE = 16_384;

export interface PictureSize {
  width: number;
  height: number;
}

/** Returns the picture size of a sequence parameter set; undefined when it is invalid. */
export function pictureSize(sps: Buffer): PictureSize | undefined {
  if (sps.length < 5) return undefined;
  const read = new BitReader(sps, 1);
  const profile = read.bits(8);
  read.bits(16);
  read.ue();
  let chroma = 1;
  if (CHROMA_PROFILES.has(profile)) {
    chroma = read.ue();
    if (chroma === 3) read.bit();
    read.ue();
    read.ue();
    read.bit();
    if (read.bit() === 1) skipScalingLists(read, chroma === 3 ? 12 : 8);
  }
  read.ue();
  const order = read.ue();
  if (order === 0) read.ue();
  else if (order === 1) skipOrderCycle(read);
  read.ue();
  read.bit();
  const columns = read.ue() + 1;
  const rows = read.ue() + 1;
  const framesOnly = read.bit();
  if (framesOnly === 0) read.bit();
  read.bit();
  const crop = read.bit() === 1 ? [read.ue(), read.ue(), read.ue(), read.ue()] : [0, 0, 0, 0];
  const unitX = chroma === 1 || chroma === 2 ? 2 : 1;
  const unitY = (chroma === 1 ? 2 : 1) * (2 - framesOnly);
  const width = columns * 16 - unitX * (crop[0]! + crop[1]!);
  const height = rows * 16 * (2 - framesOnly) - unitY * (crop[2]! + crop[3]!);
  const isSane = width > 0 && height > 0 && width <= MAX_SIDE && height <= MAX_SIDE;

  return isSane ? { width, height } : undefined;
}

function skipScalingLists(read: BitReader, lists: number): void {
  for (let i = 0; i < lists; i++) {
    if (read.bit() === 0) continue;
    let next = 8;
    for (let j = 0; j < (i < 6 ? 16 : 64) && next !== 0; j++) next = (next + read.se() + 256) % 256;
  }
}

function skipOrderCycle(read: BitReader): void {
  read.bit();
  read.se();
  read.se();
  const count = Math.min(255, read.ue());
  for (let i = 0; i < count; i++) read.se();
}

/** Returns the id of a sequence parameter set. */
export function spsId(sps: Buffer): number {
  return new BitReader(sps, 4, 16).ue();
}

/** Returns the id of a picture parameter set. */
export function ppsId(pps: Buffer): number {
  return new BitReader(pps, 1, 16).ue();
}

/** Returns whether a slice starts its picture, and whether it is bidirectional; section 7.3.3. */
export function sliceStart(slice: Buffer): { first: boolean; bidirectional: boolean } {
  const read = new BitReader(slice, 1, 24);
  const first = read.ue() === 0;

  return { first, bidirectional: read.ue() % 5 === 1 };
}
