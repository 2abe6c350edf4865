import { findStartCode, NalType } from '@bloom/rtp';
import { readSequenceParameterSet, type SequenceParameterSet } from '../h264/sequence-parameter-set.js';
import { vp8KeySize } from '../vpx/vp8-header.js';
import { readVp9Frame, splitSuperframe } from '../vpx/vp9-header.js';

export type PictureCodec = 'vp8' | 'vp9' | 'h264';

/** Pixels of the largest H.264 level 5.2 picture (MaxFS, ITU-T H.264 table A-1): 4,096 x 2,304 in any shape. */
export const MAX_PIXELS = 4_096 * 2_304;
/** Longest side at that level, the square root of 8 MaxFS (section A.3.1). Anything longer would be mostly padding. */
const MAX_SIDE = 543 * 16;
const MAX_LEVEL = 52;
/** Macroblocks buffered by a decoder of each level: MaxDpbMbs, table A-1. */
const BUFFERED_MACROBLOCKS = [
  [10, 396],
  [11, 900],
  [20, 2_376],
  [21, 4_752],
  [30, 8_100],
  [31, 18_000],
  [32, 20_480],
  [41, 32_768],
  [42, 34_816],
  [50, 110_400],
  [MAX_LEVEL, 184_320],
] as const;
const MAX_FRAMES = 16;
/**
 * Allowed at every level, even for its largest pictures: hardware encoders announce levels too low for their pictures.
 */
const ALWAYS_ALLOWED_FRAMES = 4;
/**
 * NAL units per picture. The depacketiser never produces more, but a unit full of start codes would split into
 * millions.
 */
const MAX_UNITS = 4_096;

/** References of a VP8 decoder: last, golden, altref, and the picture about to become one. */
const VP8_REFERENCES = 4;
/** References of a VP9 decoder (section 4.4 of its specification); the picture that is decoded is not one yet. */
const VP9_REFERENCES = 8;

/** Pictures besides the references and those held back: one being decoded and one being shown. */
const WORKING_FRAMES = 2;
/** Samples per pixel by `chroma_format_idc`. */
const SAMPLES = [1.5, 1.5, 2, 3];
/** Motion vectors and block types stored with each picture, in bytes per pixel. */
const MOTION_BYTES = 0.5;
/** Fixed memory of a decoder. */
const DECODER_BYTES = 1024 * 1024;

/** Picture size, and the number of pictures its decoder keeps. */
interface Shape {
  width: number;
  height: number;
  references: number;
  /** Pictures the decoder holds back initially. */
  heldBack: number;
  bytesPerPixel: number;
}

/**
 * Predicts from a track's pictures how much memory their decoder needs, before the decoder sees them: a 20-byte
 * parameter set can make it allocate hundreds of megabytes.
 */
export class PictureNeeds {
  /** By H.264 parameter set id. VP8 and VP9 have a single shape. */
  readonly #shapes = new Map<number, Shape>();
  #pixels = 0;

  /** Reads one picture. Returns the reason to withhold it from the decoder; undefined when it may pass. */
  read(codec: PictureCodec, data: Buffer): string | undefined {
    if (codec === 'h264') return this.#readH264(data);

    return codec === 'vp8' ? this.#readVp8(data) : this.#readVp9(data);
  }

  forget(): void {
    this.#shapes.clear();
    this.#pixels = 0;
  }

  /** Returns the decoder's memory in bytes; `heldBack` is the number of pictures it currently holds back. */
  bytes(heldBack: number): number {
    let most = 0;
    for (const shape of this.#shapes.values()) {
      const frames = shape.references + Math.max(heldBack, shape.heldBack) + WORKING_FRAMES;
      // The library pads rows to its vector width.
      const pixels = Math.ceil(shape.width / 64) * 64 * (Math.ceil(shape.height / 32) * 32);
      most = Math.max(most, DECODER_BYTES + frames * pixels * (shape.bytesPerPixel + MOTION_BYTES));
    }

    return most;
  }

  /**
   * Pixels of the largest picture announced since the last `forget`: held-back pictures still come out after the size
   * shrinks.
   */
  get pixels(): number {
    return this.#pixels;
  }

  #readH264(data: Buffer): string | undefined {
    let units = 0;
    for (let start = findStartCode(data, 0); start >= 0; units++) {
      if (units === MAX_UNITS) return `a picture has more than ${MAX_UNITS} NAL units`;
      const next = findStartCode(data, start + 3);
      if ((data[start + 3]! & 0x1f) === NalType.sps) {
        const refusal = this.#readParameters(data.subarray(start + 3, next < 0 ? data.length : next));
        if (refusal !== undefined) return refusal;
      }
      start = next;
    }

    return undefined;
  }

  #readParameters(nal: Buffer): string | undefined {
    const sps = readSequenceParameterSet(nal);
    if (sps === undefined) return 'its sequence parameter set is invalid';
    const { level, columns, rows, restriction, referenceFrames, chroma, bitDepth } = sps;
    const [width, height] = [columns * 16, rows * 16];
    const tooLarge = refuseSize(width, height);
    if (tooLarge !== undefined) return tooLarge;
    if (level > MAX_LEVEL) return `its H.264 level ${level / 10} is above ${MAX_LEVEL / 10}`;
    const allowed = allowedFrames(sps);
    const wanted = Math.max(referenceFrames, restriction?.bufferedFrames ?? 0, restriction?.reorderedFrames ?? 0);
    if (wanted > allowed) {
      return `its decoder has to keep ${wanted} pictures of ${width}x${height}, and H.264 level ${level / 10} allows ${allowed}`;
    }
    const bytesPerPixel = SAMPLES[chroma]! * (bitDepth > 8 ? 2 : 1);
    const heldBack = restriction?.reorderedFrames ?? 0;
    this.#add(sps.id, { width, height, references: referenceFrames, heldBack, bytesPerPixel });

    return undefined;
  }

  #readVp8(data: Buffer): string | undefined {
    const size = vp8KeySize(data);
    if (size === undefined) return undefined;
    const tooLarge = refuseSize(size.width, size.height);
    if (tooLarge !== undefined) return tooLarge;
    this.#add(0, { ...size, references: VP8_REFERENCES, heldBack: 0, bytesPerPixel: SAMPLES[1]! });

    return undefined;
  }

  /** Any frame may have another size; the larger ones before it are kept until a key picture replaces them all. */
  #readVp9(data: Buffer): string | undefined {
    for (const bytes of splitSuperframe(data)) {
      const frame = readVp9Frame(bytes);
      if (frame === undefined) return 'a frame header is invalid';
      if (frame.profile !== 0) return `its VP9 profile is ${frame.profile}, and only 0 is decoded`;
      if (frame.size === undefined) continue;
      const tooLarge = refuseSize(frame.size.width, frame.size.height);
      if (tooLarge !== undefined) return tooLarge;
      const before = (frame.key ? undefined : this.#shapes.get(0)) ?? { width: 0, height: 0 };
      const width = Math.max(before.width, frame.size.width);
      const height = Math.max(before.height, frame.size.height);
      this.#add(0, { width, height, references: VP9_REFERENCES, heldBack: 0, bytesPerPixel: SAMPLES[1]! });
    }

    return undefined;
  }

  #add(id: number, shape: Shape): void {
    this.#shapes.set(id, shape);
    this.#pixels = Math.max(this.#pixels, shape.width * shape.height);
  }
}

function refuseSize(width: number, height: number): string | undefined {
  const fits = width * height <= MAX_PIXELS && Math.max(width, height) <= MAX_SIDE;

  return fits ? undefined : `its pictures of ${width}x${height} are larger than 4096x2304`;
}

/** Pictures kept by a decoder of this level, MaxDpbFrames of section A.3.1. */
function allowedFrames({ level, columns, rows }: SequenceParameterSet): number {
  const [, macroblocks] = BUFFERED_MACROBLOCKS.find(([highest]) => level <= highest)!;

  return Math.max(ALWAYS_ALLOWED_FRAMES, Math.min(MAX_FRAMES, Math.floor(macroblocks / (columns * rows))));
}
