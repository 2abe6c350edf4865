/** Pictures of VP9 from RTP, RFC 9628. */
import { type OrderedPacket, PART_BYTES } from '../reorder-buffer.js';
import { type AssembledFrame, completed, EntryPoint, type FrameAssembler } from './payload-format.js';

/** Limits on one picture. A larger one is an attack, as is one in tiny parts, whose objects outweigh their bytes. */
const MAX_PICTURE_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 16_384;
/** Most frames of a picture: an index has three bits for their number. */
const MAX_FRAMES = 8;

/** Reads the descriptor of a packet. */
interface DescriptorReader {
  readonly entryPoint: EntryPoint;
  readonly startsLayer: boolean;
  readonly endsLayer: boolean;
  readonly descriptorLength: number;
  parse(buffer: Buffer, start: number, end: number): boolean;
}

/**
 * Joins the frames of a picture's layers, the lowest first. Several of them become a superframe, which decoders take as
 * one picture.
 */
export class Vp9Assembler implements FrameAssembler {
  readonly #reader: DescriptorReader;
  #frames: Buffer[] = [];
  /** Parts of the frame in progress. */
  #parts: Buffer[] = [];
  #partCount = 0;
  #bytes = 0;
  #timestamp = -1;
  #key = false;
  /** Packets are missing from the picture, or make no sense. */
  #isBroken = true;
  /** The picture has been returned, or there is none yet. */
  #isDone = true;
  #waitsForKey = true;

  constructor(reader: DescriptorReader) {
    this.#reader = reader;
  }

  get needsKeyframe(): boolean {
    return this.#waitsForKey;
  }

  get heldBytes(): number {
    return this.#bytes + (this.#frames.length + this.#parts.length) * PART_BYTES;
  }

  gap(): void {
    this.#clear();
    this.#isBroken = true;
    this.#waitsForKey = true;
  }

  push(packet: OrderedPacket): readonly AssembledFrame[] {
    let unmarked: AssembledFrame | undefined;
    if (packet.timestamp !== this.#timestamp) {
      // The previous picture had no marker.
      unmarked = this.#complete();
      this.#timestamp = packet.timestamp;
      this.#isBroken = false;
      this.#isDone = false;
      this.#key = false;
    }
    this.#add(packet.payload);

    return completed(unmarked, packet.marker ? this.#complete() : undefined);
  }

  #add(payload: Buffer): void {
    const reader = this.#reader;
    if (this.#isBroken || this.#isDone) return undefined;
    if (!reader.parse(payload, 0, payload.length)) return this.#break();
    // A start within a frame, or a part without one.
    if (reader.startsLayer !== (this.#parts.length === 0)) return this.#break();
    if (reader.entryPoint === EntryPoint.yes) this.#key = true;
    const part = Buffer.from(payload.subarray(reader.descriptorLength));
    this.#bytes += part.length;
    this.#partCount += 1;
    if (this.#bytes > MAX_PICTURE_BYTES || this.#partCount > MAX_PARTS) return this.gap();
    this.#parts.push(part);
    if (!reader.endsLayer) return undefined;
    this.#frames.push(Buffer.concat(this.#parts));
    this.#parts = [];

    return this.#frames.length > MAX_FRAMES ? this.gap() : undefined;
  }

  #break(): void {
    this.#clear();
    this.#isBroken = true;
  }

  #clear(): void {
    this.#frames = [];
    this.#parts = [];
    this.#partCount = 0;
    this.#bytes = 0;
  }

  #complete(): AssembledFrame | undefined {
    if (this.#isDone) return undefined;
    const frames = this.#frames;
    const isWhole = !this.#isBroken && this.#parts.length === 0 && frames.length > 0;
    this.#clear();
    this.#isDone = true;
    if (!isWhole) {
      // Later pictures refer to it.
      this.#waitsForKey = true;
      return undefined;
    }
    if (this.#key) this.#waitsForKey = false;
    if (this.#waitsForKey) return undefined;

    return { timestamp: this.#timestamp, key: this.#key, data: superframe(frames) };
  }
}

/** Appends an index to several frames: "VP9 Bitstream & Decoding Process Specification" 0.6, annex B. */
export function superframe(frames: readonly Buffer[]): Buffer {
  if (frames.length === 1) return frames[0]!;
  const marker = 0xc0 | (3 << 3) | (frames.length - 1);
  const index = Buffer.alloc(2 + 4 * frames.length, marker);
  for (const [i, { length }] of frames.entries()) index.writeUInt32LE(length, 1 + 4 * i);

  return Buffer.concat([...frames, index]);
}
