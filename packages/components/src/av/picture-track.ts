import type { CodecContext, Frame, Packet, SoftwareScaleContext } from 'node-av/lib';
import type { Canvas } from './canvas.js';
import { check, openVideoDecoder } from './codecs.js';
import { fitInto, type Tile } from './layout.js';
import type { Native } from './native.js';
import type { BudgetHolder, PictureBudget } from './picture-budget.js';
import { type PictureCodec, PictureNeeds } from './picture-needs.js';

export interface PictureTrackOptions {
  native: Native;
  method: ScalingMethod;
  /** Memory budget for all decoders of the process. */
  budget: PictureBudget;
  /** Publisher of the track. */
  origin: string;
  /** Called once per cause when pictures are left out. */
  onLeftOut(reason: string): void;
}

/** Why a track has no picture: it exceeds a limit, or other tracks have used up the memory. */
type LeftOut = 'limit' | 'memory';

/** One video track: its decoder, its newest picture, and that picture scaled for its tile. */
export class PictureTrack implements BudgetHolder {
  readonly #options: PictureTrackOptions;
  readonly #needs = new PictureNeeds();
  readonly #scaler: PictureScaler;
  readonly #packet: Packet;
  readonly #told = new Set<LeftOut>();
  #decoder: CodecContext | undefined;
  #codec: PictureCodec | undefined;
  /** `receiveFrame` clears its frame even when it returns nothing, so the shown picture is kept in another frame. */
  #picture: Frame;
  #spare: Frame;
  #hasPicture = false;
  #leftOut: LeftOut | undefined;
  /** Pictures the decoder holds back for reordering. It may discover the need only while decoding. */
  #heldBack = 0;
  #bytes = 0;
  #changed = false;
  #drawnAt = '';

  constructor(options: PictureTrackOptions) {
    this.#options = options;
    const { native, method } = options;
    const { lib } = native;
    this.#scaler = new PictureScaler(native, method);
    this.#packet = new lib.Packet();
    this.#packet.alloc();
    [this.#picture, this.#spare] = [new lib.Frame(), new lib.Frame()];
    this.#picture.alloc();
    this.#spare.alloc();
  }

  get origin(): string {
    return this.#options.origin;
  }

  /** True once there is a picture to draw. */
  get hasPicture(): boolean {
    return this.#hasPicture;
  }

  /** Why the pictures are left out. Reset by a key picture that needs less memory or finds enough of it. */
  get leftOut(): LeftOut | undefined {
    return this.#leftOut;
  }

  /**
   * Returns the number of new pictures, of which the last is kept; undefined when the data is left out or does not
   * decode.
   */
  decode(codec: PictureCodec, data: Buffer): number | undefined {
    if (this.#codec !== codec) this.#free();
    this.#codec = codec;
    const refusal = this.#needs.read(codec, data);
    if (refusal !== undefined) return this.#leave('limit', refusal);
    if (!this.#reserve()) return undefined;
    this.#leftOut = undefined;
    const decoder = (this.#decoder ??= openVideoDecoder(this.#options.native, codec));
    if (decoder === undefined) return this.#leave('limit', `the library has no decoder of ${codec}`);
    const pictures = this.#decode(decoder, data);
    // Exceeding a limit has freed the decoder.
    if (this.#decoder === undefined) return undefined;
    this.#heldBack = decoder.hasBFrames;

    return this.#reserve() ? pictures : undefined;
  }

  /**
   * Draws the newest picture unless it is already on the canvas. `layout` identifies the layout the tile belongs to.
   */
  draw(canvas: Canvas, tile: Tile, layout: string): void {
    if (!this.#hasPicture || (!this.#changed && this.#drawnAt === layout)) return;
    const { width, height } = this.#picture;
    const target = fitInto({ width, height }, tile);
    const reshaped = this.#scaler.prepare(this.#picture, target);
    const scaled = this.#scaler.scale(this.#picture);
    if (scaled === undefined) return;
    // A picture of another shape (a phone was turned) would leave parts of the old one visible beside it.
    if (reshaped || this.#drawnAt !== layout) canvas.clear(tile);
    canvas.copy(scaled, target);
    this.#changed = false;
    this.#drawnAt = layout;
  }

  /** Called by the budget when a publisher with less memory needs it. */
  giveUp(): void {
    this.#leave('memory', `its publisher has ${mebibytes(this.#bytes)} of pictures here, and others need the memory`);
  }

  close(): void {
    this.#free();
    this.#picture.free();
    this.#spare.free();
    this.#packet.free();
  }

  #decode(decoder: CodecContext, data: Buffer): number | undefined {
    this.#packet.data = data;
    const sent = decoder.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) return undefined;
    let pictures = 0;
    while (decoder.receiveFrameSync(this.#spare) >= 0) {
      const { width, height } = this.#spare;
      if (width * height > this.#needs.pixels) {
        return this.#leave('limit', `its pictures of ${width}x${height} are larger than announced`);
      }
      [this.#picture, this.#spare] = [this.#spare, this.#picture];
      this.#hasPicture = true;
      this.#changed = true;
      pictures += 1;
    }

    return pictures;
  }

  /** Returns false when there is no memory for the decoder; its pictures are then left out. */
  #reserve(): boolean {
    const { budget } = this.#options;
    const bytes = this.#needs.bytes(this.#heldBack);
    if (bytes === this.#bytes || budget.reserve(this, bytes)) {
      this.#bytes = bytes;
      return true;
    }
    const reason = `its pictures need ${mebibytes(bytes)} of memory, and all of this composition may take ${mebibytes(budget.limitBytes)}`;
    this.#leave('memory', reason);

    return false;
  }

  #leave(cause: LeftOut, reason: string): undefined {
    this.#free();
    this.#leftOut = cause;
    if (this.#told.has(cause)) return;
    this.#told.add(cause);
    this.#options.onLeftOut(reason);
  }

  /** Frees all memory that depends on the picture size. */
  #free(): void {
    this.#options.budget.release(this);
    this.#bytes = 0;
    this.#heldBack = 0;
    this.#needs.forget();
    this.#decoder?.freeContext();
    this.#decoder = undefined;
    this.#scaler.close();
    this.#picture.unref();
    this.#spare.unref();
    this.#hasPicture = false;
    this.#changed = false;
    this.#drawnAt = '';
  }
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MiB`;

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

  /** Prepares for pictures of this shape; returns false if it was already prepared for them. */
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
    // Vector code may write past the end of a row, so it must not write straight into the canvas.
    scaled.width = target.width;
    scaled.height = target.height;
    check(scaled.getBuffer(64), `out of memory for a tile of ${target.width}x${target.height}`);
    this.#scaler = scaler;
    this.#scaled = scaled;
    this.#scaledFor = key;

    return true;
  }

  /** Returns the picture scaled as prepared; undefined when it cannot be scaled. */
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
