import type { CodecContext, Frame, Packet, SoftwareScaleContext } from 'node-av/lib';
import type { Canvas } from './canvas.js';
import { check, openVideoDecoder } from './codecs.js';
import { fitInto, type Tile } from './layout.js';
import type { Native } from './native.js';

export type PictureCodec = 'vp8' | 'h264';

/** One video track: its decoder, its newest picture, and that picture scaled for its tile. */
export class PictureTrack {
  readonly #native: Native;
  readonly #scaler: PictureScaler;
  readonly #packet: Packet;
  #decoder: CodecContext | undefined;
  #codec: PictureCodec | undefined;
  /** `receiveFrame` clears its frame even without a result, so the shown picture is another one. */
  #picture: Frame;
  #spare: Frame;
  #changed = false;
  #drawnAt = '';

  constructor(native: Native, method: ScalingMethod) {
    const { lib } = native;
    this.#native = native;
    this.#scaler = new PictureScaler(native, method);
    this.#packet = new lib.Packet();
    this.#packet.alloc();
    [this.#picture, this.#spare] = [new lib.Frame(), new lib.Frame()];
    this.#picture.alloc();
    this.#spare.alloc();
  }

  /** Returns the number of new pictures, of which the last is kept; undefined when the data does not decode. */
  decode(codec: PictureCodec, data: Buffer): number | undefined {
    if (this.#codec !== codec) {
      this.#decoder?.freeContext();
      this.#decoder = openVideoDecoder(this.#native, codec);
      this.#codec = codec;
    }
    const decoder = this.#decoder!;
    this.#packet.data = data;
    const sent = decoder.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) return undefined;
    let pictures = 0;
    while (decoder.receiveFrameSync(this.#spare) >= 0) {
      [this.#picture, this.#spare] = [this.#spare, this.#picture];
      this.#changed = true;
      pictures += 1;
    }

    return pictures;
  }

  /** Draws the newest picture unless it is there already. `layout` names the layout that the tile belongs to. */
  draw(canvas: Canvas, tile: Tile, layout: string): void {
    if (!this.#changed && this.#drawnAt === layout) return;
    const { width, height } = this.#picture;
    const target = fitInto({ width, height }, tile);
    const reshaped = this.#scaler.prepare(this.#picture, target);
    const scaled = this.#scaler.scale(this.#picture);
    if (scaled === undefined) return;
    // A picture of another shape, as when a phone is turned, would leave parts of the former one beside it.
    if (reshaped || this.#drawnAt !== layout) canvas.clear(tile);
    canvas.copy(scaled, target);
    this.#changed = false;
    this.#drawnAt = layout;
  }

  close(): void {
    this.#decoder?.freeContext();
    this.#scaler.close();
    this.#picture.free();
    this.#spare.free();
    this.#packet.free();
  }
}

type ScalingMethod = 'SWS_BILINEAR' | 'SWS_BICUBIC';

class PictureScaler {
  readonly #native: Native;
  readonly #method: ScalingMethod;
  #scaler: SoftwareScaleContext | undefined;
  #scaled: Frame | undefined;
  #scaledFor = '';

  constructor(native: Native, method: ScalingMethod) {
    this.#native = native;
    this.#method = method;
  }

  /** Prepares for pictures of this shape; returns false when it was prepared for them already. */
  prepare({ width, height, format }: Frame, target: Tile): boolean {
    const key = `${width}x${height}/${format}>${target.width}x${target.height}`;
    if (key === this.#scaledFor) return false;
    const { lib, constants } = this.#native;
    this.close();
    const format420 = constants.AV_PIX_FMT_YUV420P;
    const scaler = new lib.SoftwareScaleContext();
    const source = format as typeof format420;
    scaler.getContext(width, height, source, target.width, target.height, format420, constants[this.#method]);
    const scaled = new lib.Frame();
    scaled.alloc();
    scaled.format = format420;
    // Vector code may write past the end of a row, so never straight into the canvas.
    scaled.width = target.width;
    scaled.height = target.height;
    check(scaled.getBuffer(64), `no memory for a tile of ${target.width}x${target.height}`);
    this.#scaler = scaler;
    this.#scaled = scaled;
    this.#scaledFor = key;

    return true;
  }

  /** Returns the picture as prepared for; undefined when it cannot be scaled. */
  scale(picture: Frame): Frame | undefined {
    return this.#scaler!.scaleFrameSync(this.#scaled!, picture) < 0 ? undefined : this.#scaled;
  }

  close(): void {
    this.#scaler?.freeContext();
    this.#scaled?.free();
    this.#scaler = undefined;
    this.#scaled = undefined;
    this.#scaledFor = '';
  }
}
