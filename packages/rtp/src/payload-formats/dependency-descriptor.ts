/**
 * The dependency descriptor: a header extension that tells the layer of an AV1 frame (appendix A of "RTP Payload Format
 * For AV1" of the Alliance for Open Media, version 1.0). Templates arrive with key frames; other packets name one.
 */
import { readU16 } from '../bytes.js';
import { SequenceUnwrapper } from '../unwrap.js';

export const DESCRIPTOR_URI = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';

/** Length of a descriptor without optional fields, bytes (section A.8.2). */
const MANDATORY_BYTES = 3;
/** A template is named by six bits. */
const MAX_TEMPLATES = 64;
/** Layers of the scalability modes, and some to spare. */
const MAX_SPATIAL = 3;
const MAX_TEMPORAL = 7;
/** Templates times decode targets: their indications are the work of a structure. L3T3 has 9 targets, 15 templates. */
const MAX_INDICATIONS = 256;
/** Frames by which a retransmission may come late; numbers further back are of a sender that began again. */
const MAX_LATE_FRAMES = 1024;
/** A decode target indication (section A.4): from this frame on, the target can be decoded without earlier ones. */
const SWITCH = 2;
/** The next template has the same layers, is of the next temporal or of the next spatial layer; there is none. */
const NEXT_TEMPORAL = 1;
const NEXT_SPATIAL = 2;
const NO_MORE = 3;

interface FrameTemplate {
  spatial: number;
  temporal: number;
  /** Highest temporal layer that a receiver may begin to get with this frame; -1 if none. */
  switchesTo: number;
}

/** The frames that a sequence consists of. */
interface DependencyStructure {
  /** Unwrapped number of the frame that brought it. */
  frameNumber: number;
  firstId: number;
  templates: readonly FrameTemplate[];
}

const UNKNOWN: FrameTemplate = { spatial: 0, temporal: 0, switchesTo: -1 };

/** Reads the descriptors of one stream. Nothing is allocated per packet, except with a key frame. */
export class DependencyDescriptors {
  /** `id`: of the header extension; undefined if it was not agreed. */
  constructor(public id: number | undefined) {}

  /** Whether the frame ends with the packet. */
  endsFrame = false;
  /** The template of the frame; one of the base layer while the templates are unknown. */
  frame = UNKNOWN;
  #structure: DependencyStructure | undefined;
  readonly #numbers = new SequenceUnwrapper();

  /**
   * Reads `buffer[start, start + length)`. Returns false if it is malformed; the templates then stay as they were. They
   * stay as well with a key frame that comes again or late.
   */
  read(buffer: Buffer, start: number, length: number): boolean {
    if (length < MANDATORY_BYTES) return false;
    const first = buffer[start]!;
    const frameNumber = this.#numbers.unwrap(readU16(buffer, start + 1));
    const late = this.#structure === undefined ? -1 : this.#structure.frameNumber - frameNumber;
    const isKnown = late >= 0 && late <= MAX_LATE_FRAMES;
    if (!isKnown && length > MANDATORY_BYTES && (buffer[start + MANDATORY_BYTES]! & 0x80) !== 0) {
      const read = readStructure(new BitReader(buffer, start + MANDATORY_BYTES, start + length));
      if (read === undefined) return false;
      this.#structure = { frameNumber, ...read };
    }
    this.endsFrame = (first & 0x40) !== 0;
    // Without the packet that brought its template, the frame counts as one that everybody needs. So does one from
    // before the present templates.
    const structure = this.#structure;
    const template = structure?.templates[(first + MAX_TEMPLATES - structure.firstId) % MAX_TEMPLATES];
    this.frame = (isKnown && late > 0 ? undefined : template) ?? UNKNOWN;
    return true;
  }
}

/** Reads bits, which are zero after the end. */
class BitReader {
  #bit = 0;
  readonly #bits: number;

  constructor(
    readonly buffer: Buffer,
    readonly start: number,
    end: number,
  ) {
    this.#bits = (end - start) * 8;
  }

  /** Bits up to the end; negative after it. */
  get left(): number {
    return this.#bits - this.#bit;
  }

  read(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i += 1) {
      const bit =
        this.#bit < this.#bits ? (this.buffer[this.start + (this.#bit >>> 3)]! >>> (7 - (this.#bit & 7))) & 1 : 0;
      value = value * 2 + bit;
      this.#bit += 1;
    }
    return value;
  }

  /** Reads a value below `count` (section A.8.1, `ns`). */
  readBelow(count: number): number {
    let width = 0;
    while (count >>> width !== 0) width += 1;
    const short = 2 ** width - count;
    const value = this.read(width - 1);
    return value < short ? value : value * 2 - short + this.read(1);
  }
}

/** Reads the extended fields up to the resolutions (sections A.8.2 and A.8.3); undefined if they are malformed. */
function readStructure(bits: BitReader): Omit<DependencyStructure, 'frameNumber'> | undefined {
  // The flags of what follows the structure.
  bits.read(5);
  const firstId = bits.read(6);
  const targetCount = bits.read(5) + 1;
  const layers = readLayers(bits);
  if (layers === undefined || layers.length * targetCount > MAX_INDICATIONS) return undefined;
  if (bits.left < layers.length * targetCount * 2) return undefined;
  const indications = layers.map(() => Array.from({ length: targetCount }, () => bits.read(2)));
  for (let i = 0; i < layers.length; i += 1) while (bits.read(1) === 1) bits.read(4);
  const chains = bits.readBelow(targetCount + 1);
  if (chains > 0) {
    for (let i = 0; i < targetCount; i += 1) bits.readBelow(chains);
    if (bits.left < layers.length * chains * 4) return undefined;
    for (let i = 0; i < layers.length * chains; i += 1) bits.read(4);
  }
  const hasResolutions = bits.read(1) === 1;
  if (hasResolutions) for (let i = 0; i <= layers.at(-1)!.spatial; i += 1) bits.read(32);
  return bits.left < 0 ? undefined : { firstId, templates: templatesOf(layers, indications) };
}

function readLayers(bits: BitReader): Pick<FrameTemplate, 'spatial' | 'temporal'>[] | undefined {
  const layers: Pick<FrameTemplate, 'spatial' | 'temporal'>[] = [];
  let [spatial, temporal] = [0, 0];
  for (;;) {
    layers.push({ spatial, temporal });
    const next = bits.read(2);
    if (next === NO_MORE) return layers;
    if (next === NEXT_TEMPORAL) temporal += 1;
    if (next === NEXT_SPATIAL) [spatial, temporal] = [spatial + 1, 0];
    if (spatial > MAX_SPATIAL || temporal > MAX_TEMPORAL || layers.length === MAX_TEMPLATES) return undefined;
  }
}

/** Adds to each template the temporal layers that a receiver may begin with. */
function templatesOf(
  layers: readonly Pick<FrameTemplate, 'spatial' | 'temporal'>[],
  indications: readonly (readonly number[])[],
): FrameTemplate[] {
  // A decode target has the highest layers of the frames that belong to it (section A.8.3.7).
  const targets = (indications[0] ?? []).map((_, target) => {
    const members = layers.filter((__, i) => indications[i]![target] !== 0);
    return {
      spatial: Math.max(-1, ...members.map(({ spatial }) => spatial)),
      temporal: Math.max(-1, ...members.map(({ temporal }) => temporal)),
    };
  });
  return layers.map(({ spatial, temporal }, i) => {
    const switched = targets.filter((target, j) => target.spatial === spatial && indications[i]![j] === SWITCH);
    let switchesTo = temporal - 1;
    while (switched.some((target) => target.temporal === switchesTo + 1)) switchesTo += 1;
    return { spatial, temporal, switchesTo: switchesTo < temporal ? -1 : switchesTo };
  });
}
