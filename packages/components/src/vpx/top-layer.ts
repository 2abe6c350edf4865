import { superframe } from '@bloom/rtp';
import type { PictureSize } from '../h264/parameter-sets.js';
import { Bits } from './bits.js';
import { FRAME_MARKER, readSize, REFERENCES, skipColours, splitSuperframe, SYNC_CODE } from './vp9-header.js';

const SLOTS = 8;
const SEGMENTS = 8;
/** Bits of a feature of a segment, and whether it has a sign. */
const FEATURES = [
  [8, true],
  [6, true],
  [2, false],
  [0, false],
] as const;
/** Tiles are at least 4 and at most 64 superblocks of 64 pixels wide. */
const LEAST_TILE = 4;
const LARGEST_TILE = 64;

/** Places in the header of a frame, in bits. */
interface Places {
  isKey: boolean;
  /** show_frame, after which error_resilient_mode follows. */
  show: number;
  end: number;
}

/**
 * Marks all layers of a VP9 picture but the last as not shown. Publishers mark all of them as shown, and players that
 * know no layers show one after the other. Layers differ in size, so nothing else in the stream depends on the mark.
 */
export class TopLayer {
  /** Sizes of the reference frames: the length of some headers depends on them. */
  readonly #sizes = Array.from<PictureSize | undefined>({ length: SLOTS });

  /** Returns the picture with only its last layer shown. Pictures must be passed in order, each of them. */
  show(picture: Buffer): Buffer {
    const frames = splitSuperframe(picture);
    const places = frames.map((frame) => this.#read(frame));
    if (frames.length < 2) return picture;

    return superframe(frames.map((frame, i) => (i === frames.length - 1 ? frame : hidden(frame, places[i]))));
  }

  /** Reads a header, section 6.2. Returns undefined if there is nothing to hide, or no valid header. */
  #read(frame: Buffer): Places | undefined {
    const bits = new Bits(frame);
    if (bits.read(2) !== FRAME_MARKER) return undefined;
    const profile = bits.read(1) + 2 * bits.read(1);
    // Also of frames that show an earlier one.
    if (profile !== 0 || bits.read(1) === 1) return undefined;
    const isKey = bits.read(1) === 0;
    const show = bits.at;
    const isShown = bits.read(1) === 1;
    const isResilient = bits.read(1) === 1;
    let isIntra = isKey;
    if (!isKey) {
      isIntra = !isShown && bits.read(1) === 1;
      if (!isResilient) bits.read(2);
    }
    if (isIntra && bits.read(24) !== SYNC_CODE) return undefined;
    if (isKey) skipColours(bits, profile);
    const refreshed = isKey ? 0xff : bits.read(8);
    const size = isIntra ? readSize(bits) : this.#sizeWithReferences(bits);
    if (size === undefined) return undefined;
    // render_size
    if (bits.read(1) === 1) bits.read(32);
    // allow_high_precision_mv, and the interpolation filter
    if (!isIntra && bits.read(2) % 2 === 0) bits.read(2);
    if (!isResilient) bits.read(2);
    bits.read(2);
    skipLoopFilter(bits);
    skipQuantisation(bits);
    skipSegmentation(bits);
    skipTiles(bits, size.width);
    bits.read(16);
    if (bits.isCut) return undefined;
    for (let slot = 0; slot < SLOTS; slot++) if ((refreshed >> slot) % 2 === 1) this.#sizes[slot] = size;

    return isShown ? { isKey, show, end: bits.at } : undefined;
  }

  #sizeWithReferences(bits: Bits): PictureSize | undefined {
    const slots = Array.from({ length: REFERENCES }, () => bits.read(4) >> 1);
    for (const slot of slots) if (bits.read(1) === 1) return this.#sizes[slot];

    return readSize(bits);
  }
}

/** Clears show_frame. A frame that is no key frame then says in one bit more that it is not intra_only. */
function hidden(frame: Buffer, places: Places | undefined): Buffer {
  if (places === undefined) return frame;
  const { isKey, show, end } = places;
  const rest = frame.subarray(Math.ceil(end / 8));
  const reader = new Bits(frame);
  const header: number[] = [];
  for (let i = 0; i < end; i++) {
    const bit = reader.read(1);
    header.push(i === show ? 0 : bit);
    if (i === show + 1 && !isKey) header.push(0);
  }
  const bytes = Buffer.alloc(Math.ceil(header.length / 8));
  for (const [i, bit] of header.entries()) bytes[i >> 3]! |= bit << (7 - (i & 7));

  return Buffer.concat([bytes, rest]);
}

function skipLoopFilter(bits: Bits): void {
  bits.read(9);
  const hasDeltas = bits.read(1) === 1;
  if (!hasDeltas || bits.read(1) === 0) return;
  for (let i = 0; i < 6; i++) if (bits.read(1) === 1) bits.read(7);
}

function skipQuantisation(bits: Bits): void {
  bits.read(8);
  for (let i = 0; i < 3; i++) if (bits.read(1) === 1) bits.read(5);
}

function skipSegmentation(bits: Bits): void {
  if (bits.read(1) === 0) return;
  if (bits.read(1) === 1) {
    for (let i = 0; i < 7; i++) if (bits.read(1) === 1) bits.read(8);
    const isTemporal = bits.read(1) === 1;
    for (let i = 0; i < 3; i++) if (isTemporal && bits.read(1) === 1) bits.read(8);
  }
  if (bits.read(1) === 0) return;
  bits.read(1);
  for (let segment = 0; segment < SEGMENTS; segment++) {
    for (const [length, hasSign] of FEATURES) if (bits.read(1) === 1) bits.read(length + (hasSign ? 1 : 0));
  }
}

function skipTiles(bits: Bits, width: number): void {
  const superblocks = Math.ceil(width / 64);
  let least = 0;
  while (LARGEST_TILE << least < superblocks) least++;
  let most = 1;
  while (superblocks >> most >= LEAST_TILE) most++;
  for (let columns = least; columns < most - 1 && bits.read(1) === 1; columns++);
  if (bits.read(1) === 1) bits.read(1);
}
