import { BitReader } from './bit-reader.js';

/** Profiles whose sequence parameter sets include chroma fields, ITU-T H.264 section 7.3.2.1.1. */
const CHROMA_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
/** Maxima from section 7.4.2.1.1. */
const MAX_ID = 31;
const MAX_CHROMA = 3;
const MAX_EXTRA_BITS = 6;
const MAX_LOG2 = 12;
const MAX_ORDER_TYPE = 2;
const MAX_ORDER_CYCLE = 255;
const MAX_SIDE = 16_384;
/** Maximum number of coded picture buffers, section E.2.2. */
const MAX_BUFFERS = 31;
/** `aspect_ratio_idc` that announces an explicit ratio in two numbers, table E-1. */
const EXTENDED_ASPECT = 255;

export interface SequenceParameterSet {
  id: number;
  /** Ten times the level; 9 means level 1b. */
  level: number;
  /** Displayed size. */
  width: number;
  height: number;
  /** Coded size in macroblocks of 16 x 16 pixels. */
  columns: number;
  rows: number;
  /** `chroma_format_idc`: 0 = monochrome, 1 = 4:2:0, 2 = 4:2:2, 3 = 4:4:4. */
  chroma: number;
  /** Bits per sample, the larger of luma and chroma. */
  bitDepth: number;
  referenceFrames: number;
  /** Absent when the set has no such fields. */
  restriction?: {
    /** Pictures a decoder holds back for reordering. */
    reorderedFrames: number;
    /** All pictures in the buffer: references, and pictures waiting to be output. */
    bufferedFrames: number;
  };
}

/**
 * Reads a sequence parameter set from a whole NAL unit. Returns undefined when it is incomplete or violates the
 * standard.
 */
export function readSequenceParameterSet(nal: Buffer): SequenceParameterSet | undefined {
  const read = new BitReader(nal, 1);
  const profile = read.bits(8);
  const constraints = read.bits(8);
  const idc = read.bits(8);
  const id = read.ue();
  const format = CHROMA_PROFILES.has(profile) ? readFormat(read) : { chroma: 1, bitDepth: 8 };
  if (id > MAX_ID || format === undefined || !skipNumbering(read)) return undefined;
  const referenceFrames = read.ue();
  read.bit();
  const columns = read.ue() + 1;
  const mapUnits = read.ue() + 1;
  const fields = 2 - read.bit();
  if (fields === 2) read.bit();
  read.bit();
  const crop = read.bit() === 1 ? [read.ue(), read.ue(), read.ue(), read.ue()] : [0, 0, 0, 0];
  const rows = mapUnits * fields;
  const unitX = format.chroma === 1 || format.chroma === 2 ? 2 : 1;
  const unitY = (format.chroma === 1 ? 2 : 1) * fields;
  const width = columns * 16 - unitX * (crop[0]! + crop[1]!);
  const height = rows * 16 - unitY * (crop[2]! + crop[3]!);
  const isSane = columns * 16 <= MAX_SIDE && rows * 16 <= MAX_SIDE && width > 0 && height > 0;
  if (!isSane || read.overrun) return undefined;
  const restriction = read.bit() === 1 ? readRestriction(read) : undefined;
  // Profiles below High signal level 1b as 1.1 with a constraint flag, section A.3.1.
  const isLevel1b = idc === 11 && (constraints & 0x10) !== 0 && !CHROMA_PROFILES.has(profile);

  return {
    id,
    level: isLevel1b ? 9 : idc,
    width,
    height,
    columns,
    rows,
    ...format,
    referenceFrames,
    ...(restriction === undefined ? {} : { restriction }),
  };
}

function readFormat(read: BitReader): { chroma: number; bitDepth: number } | undefined {
  const chroma = read.ue();
  if (chroma > MAX_CHROMA) return undefined;
  if (chroma === 3) read.bit();
  const extraBits = Math.max(read.ue(), read.ue());
  if (extraBits > MAX_EXTRA_BITS) return undefined;
  read.bit();
  if (read.bit() === 1 && !skipScalingLists(read, chroma === 3 ? 12 : 8)) return undefined;

  return { chroma, bitDepth: 8 + extraBits };
}

function skipScalingLists(read: BitReader, lists: number): boolean {
  for (let i = 0; i < lists; i++) {
    if (read.bit() === 0) continue;
    let next = 8;
    for (let j = 0; j < (i < 6 ? 16 : 64) && next !== 0; j++) {
      const delta = read.se();
      if (delta < -128 || delta > 127) return false;
      next = (next + delta + 256) % 256;
    }
  }

  return true;
}

/** Skips the fields for frame numbers and picture order. */
function skipNumbering(read: BitReader): boolean {
  if (read.ue() > MAX_LOG2) return false;
  const order = read.ue();
  if (order > MAX_ORDER_TYPE) return false;
  if (order === 0) return read.ue() <= MAX_LOG2;
  if (order === 2) return true;
  read.bit();
  read.se();
  read.se();
  const cycle = read.ue();
  if (cycle > MAX_ORDER_CYCLE) return false;
  for (let i = 0; i < cycle; i++) read.se();

  return true;
}

/**
 * Returns the restriction at the end of the usability information, annex E; undefined when that is incomplete, as some
 * encoders leave it.
 */
function readRestriction(read: BitReader): SequenceParameterSet['restriction'] {
  if (read.bit() === 1 && read.bits(8) === EXTENDED_ASPECT) read.skip(32);
  if (read.bit() === 1) read.bit();
  if (read.bit() === 1) {
    read.skip(4);
    if (read.bit() === 1) read.skip(24);
  }
  if (read.bit() === 1) {
    read.ue();
    read.ue();
  }
  if (read.bit() === 1) read.skip(65);
  const [nal, vcl] = [skipBuffers(read), skipBuffers(read)];
  if (nal === 'invalid' || vcl === 'invalid') return undefined;
  if (nal === 'skipped' || vcl === 'skipped') read.bit();
  read.bit();
  if (read.bit() === 0) return undefined;
  read.bit();
  for (let i = 0; i < 4; i++) read.ue();
  const [reorderedFrames, bufferedFrames] = [read.ue(), read.ue()];

  return read.overrun ? undefined : { reorderedFrames, bufferedFrames };
}

function skipBuffers(read: BitReader): 'absent' | 'skipped' | 'invalid' {
  if (read.bit() === 0) return 'absent';
  const more = read.ue();
  if (more > MAX_BUFFERS) return 'invalid';
  read.skip(8);
  for (let i = 0; i <= more; i++) {
    read.ue();
    read.ue();
    read.bit();
  }
  read.skip(20);

  return 'skipped';
}
