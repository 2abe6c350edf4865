import { findStartCode, NalType } from '@bloom/rtp';
import { readSequenceParameterSet, type SequenceParameterSet } from '../h264/sequence-parameter-set.js';

export type PictureCodec = 'vp8' | 'h264';

/** Pixels of the largest pictures of H.264 level 5.2 (MaxFS, ITU-T H.264 table A-1): 4,096 x 2,304 in any shape. */
export const MAX_PIXELS = 4_096 * 2_304;
/** Longest side at that level, the root of 8 MaxFS (section A.3.1): a longer one would be mostly padding. */
const MAX_SIDE = 543 * 16;
const MAX_LEVEL = 52;
/** Macroblocks that a decoder of each level buffers: MaxDpbMbs, table A-1. */
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
/** Every level allows this many of its largest pictures. Hardware encoders announce levels below their pictures. */
const ALWAYS_ALLOWED_FRAMES = 4;
/** NAL units of one picture: the depacketiser makes no more, and one that is full of start codes would become millions. */
const MAX_UNITS = 4_096;

/** References of a VP8 decoder: last, golden and alternate, and the picture that becomes one. */
const VP8_REFERENCES = 4;
const VP8_KEY_HEADER = Buffer.from([0x9d, 0x01, 0x2a]);
const VP8_KEY_HEADER_BYTES = 10;

/** Pictures besides references and those held back: the one being decoded and the one being shown. */
const WORKING_FRAMES = 2;
/** Samples per pixel by `chroma_format_idc`. */
const SAMPLES = [1.5, 1.5, 2, 3];
/** Motion vectors and block types that are kept with each picture, bytes per pixel. */
const MOTION_BYTES = 0.5;
/** The decoder itself. */
const DECODER_BYTES = 1024 * 1024;

/** The size of a picture and how many of them its decoder keeps. */
interface Shape {
  width: number;
  height: number;
  references: number;
  /** Pictures that its decoder holds back at first. */
  heldBack: number;
  bytesPerPixel: number;
}

/**
 * Reads from the pictures of one track how much memory their decoder will take, before it gets them: a publisher orders
 * hundreds of megabytes with a parameter set of twenty bytes.
 */
export class PictureNeeds {
  /** By the id of the H.264 parameter set; VP8 has one shape. */
  readonly #shapes = new Map<number, Shape>();
  #pixels = 0;

  /** Reads one picture. Returns why a decoder must not get it; undefined when it may. */
  read(codec: PictureCodec, data: Buffer): string | undefined {
    return codec === 'vp8' ? this.#readVp8(data) : this.#readH264(data);
  }

  forget(): void {
    this.#shapes.clear();
    this.#pixels = 0;
  }

  /** Returns the memory that the decoder takes, bytes; `heldBack` is how many pictures it holds back by now. */
  bytes(heldBack: number): number {
    let most = 0;
    for (const shape of this.#shapes.values()) {
      const frames = shape.references + Math.max(heldBack, shape.heldBack) + WORKING_FRAMES;
      // The library pads rows to its vectors.
      const pixels = Math.ceil(shape.width / 64) * 64 * (Math.ceil(shape.height / 32) * 32);
      most = Math.max(most, DECODER_BYTES + frames * pixels * (shape.bytesPerPixel + MOTION_BYTES));
    }

    return most;
  }

  /** Pixels of the largest picture announced since the last `forget`: pictures that were held back come after a smaller size. */
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

  /** RFC 6386 section 9.1. */
  #readVp8(data: Buffer): string | undefined {
    const isKey = data.length >= VP8_KEY_HEADER_BYTES && (data[0]! & 1) === 0;
    if (!isKey || !data.subarray(3, 6).equals(VP8_KEY_HEADER)) return undefined;
    const [width, height] = [data.readUInt16LE(6) & 0x3fff, data.readUInt16LE(8) & 0x3fff];
    const tooLarge = refuseSize(width, height);
    if (tooLarge !== undefined) return tooLarge;
    this.#add(0, { width, height, references: VP8_REFERENCES, heldBack: 0, bytesPerPixel: SAMPLES[1]! });

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

/** Pictures that a decoder of the level keeps, MaxDpbFrames of section A.3.1. */
function allowedFrames({ level, columns, rows }: SequenceParameterSet): number {
  const [, macroblocks] = BUFFERED_MACROBLOCKS.find(([highest]) => level <= highest)!;

  return Math.max(ALWAYS_ALLOWED_FRAMES, Math.min(MAX_FRAMES, Math.floor(macroblocks / (columns * rows))));
}
