import { Vp8Descriptor } from '../codecs/vp8.js';
import { completed, PART_BYTES } from './completed.js';
import type { OrderedPacket } from './reorder-buffer.js';

/** One coded picture. */
export interface Vp8Frame {
  /** Unwrapped RTP timestamp. */
  timestamp: number;
  key: boolean;
  data: Buffer;
}

/** Bounds on one picture: a larger one is an attack, as is one in parts of some bytes, whose objects outweigh them. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 16_384;

/** Turns ordered packets into VP8 frames (RFC 7741). After a loss it returns nothing before the next key frame. */
export class Vp8Depacketiser {
  readonly #descriptor = new Vp8Descriptor();
  #parts: Buffer[] = [];
  #bytes = 0;
  #timestamp = -1;
  #key = false;
  #broken = true;
  #waitsForKey = true;

  /** True while frames are dropped until the next key frame: ask the sender for one. */
  get needsKeyFrame(): boolean {
    return this.#waitsForKey;
  }

  /** Bytes of the incomplete picture, `PART_BYTES` for each part included. */
  get heldBytes(): number {
    return this.#bytes + this.#parts.length * PART_BYTES;
  }

  /** Reports that packets are missing before the next one. */
  gap(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#broken = true;
    this.#waitsForKey = true;
  }

  /** Returns the frames that this packet completes, two at most. */
  push(packet: OrderedPacket): readonly Vp8Frame[] {
    let unmarked: Vp8Frame | undefined;
    if (packet.timestamp !== this.#timestamp) {
      // The previous frame had no marker.
      unmarked = this.#complete();
      this.#timestamp = packet.timestamp;
      this.#broken = true;
    }
    const { payload } = packet;
    const d = this.#descriptor;
    if (payload.length > 0 && d.parse(payload, 0, payload.length) && d.length < payload.length) {
      if ((d.first & 0x17) === 0x10) {
        this.#broken = false;
        this.#key = d.isKeyFrameStart;
      }
      if (!this.#broken) this.#add(payload.subarray(d.length));
    }
    return completed(unmarked, packet.marker ? this.#complete() : undefined);
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > MAX_FRAME_BYTES || this.#parts.length >= MAX_PARTS) this.gap();
    else this.#parts.push(Buffer.from(part));
  }

  #complete(): Vp8Frame | undefined {
    const parts = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    if (parts.length === 0 || this.#broken) {
      return undefined;
    }
    this.#broken = true;
    if (this.#key) this.#waitsForKey = false;
    if (this.#waitsForKey) return undefined;
    return { timestamp: this.#timestamp, key: this.#key, data: Buffer.concat(parts) };
  }
}
