import type { CodecContext, Frame, Packet, SoftwareScaleContext } from 'node-av/lib';
import type { Canvas } from '../hls/engine/canvas.js';
import { fitInto, type Tile } from '../hls/engine/layout.js';
import type { Native } from '../hls/engine/native.js';
import { picturesOf, TimedFrames } from './timed-frames.js';

/** A picture that lasts longer is of a camera that was off: it gives up its tile. */
const STALE_MS = 10_000;

/** One recorded H.264 file: its picture at the time of the mix, scaled for its tile. */
export class MixedVideo {
  readonly #native: Native;
  readonly #frames: TimedFrames;
  readonly #decoder: CodecContext;
  readonly #packet: Packet;
  /** `receiveFrame` clears its frame even when there is none: the last picture is another one. */
  #picture: Frame;
  #spare: Frame;
  #shownFromMs = Number.POSITIVE_INFINITY;
  #endMs = 0;
  #changed = false;
  #scaler: SoftwareScaleContext | undefined;
  #scaled: Frame | undefined;
  #scaledFor = '';
  #drawnAt = '';

  constructor(native: Native, path: string, startMs: number) {
    const { lib, constants } = native;
    this.#native = native;
    this.#frames = new TimedFrames(picturesOf(path, startMs));
    const codec = lib.Codec.findDecoderByName(constants.FF_DECODER_H264);
    this.#decoder = new lib.CodecContext();
    this.#decoder.allocContext3(codec);
    this.#decoder.threadCount = 1;
    this.#decoder.setFlags(constants.AV_CODEC_FLAG_LOW_DELAY);
    const opened = this.#decoder.open2Sync(codec, null);
    if (opened < 0) throw new Error(`the H.264 decoder does not open: ${opened}`);
    this.#packet = new lib.Packet();
    this.#packet.alloc();
    [this.#picture, this.#spare] = [new lib.Frame(), new lib.Frame()];
    this.#picture.alloc();
    this.#spare.alloc();
  }

  /** Decodes what begins at `atMs` or before. */
  async advance(atMs: number): Promise<void> {
    for (let frame = await this.#frames.take(atMs); frame !== undefined; frame = await this.#frames.take(atMs)) {
      this.#endMs = frame.atMs + frame.durationMs;
      this.#decode(frame.data, frame.atMs);
    }
  }

  visibleAt(atMs: number): boolean {
    return atMs - this.#shownFromMs < STALE_MS && atMs >= this.#shownFromMs && !this.finishedAt(atMs);
  }

  finishedAt(atMs: number): boolean {
    return this.#frames.finished && atMs >= this.#endMs;
  }

  /** Draws the picture unless it is there already. `layout` names the layout that the tile belongs to. */
  draw(canvas: Canvas, tile: Tile, layout: string): void {
    if (!this.#changed && this.#drawnAt === layout) return;
    const { width, height, format } = this.#picture;
    const target = fitInto({ width, height }, tile);
    const key = `${width}x${height}/${format}>${target.width}x${target.height}`;
    if (key !== this.#scaledFor) {
      this.#prepareScaling(target);
      // A picture of another shape leaves bars of the former one.
      canvas.clear(tile);
      this.#scaledFor = key;
    }
    if (this.#scaler!.scaleFrameSync(this.#scaled!, this.#picture) < 0) return;
    canvas.copy(this.#scaled!, target);
    this.#changed = false;
    this.#drawnAt = layout;
  }

  /** A picture that does not decode is as good as lost: the one before stays. */
  #decode(data: Buffer, atMs: number): void {
    this.#packet.data = data;
    const sent = this.#decoder.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) return;
    while (this.#decoder.receiveFrameSync(this.#spare) >= 0) {
      [this.#picture, this.#spare] = [this.#spare, this.#picture];
      this.#shownFromMs = atMs;
      this.#changed = true;
    }
  }

  #prepareScaling(target: Tile): void {
    const { lib, constants } = this.#native;
    this.#scaler?.freeContext();
    this.#scaled?.free();
    const { width, height, format } = this.#picture;
    const format420 = constants.AV_PIX_FMT_YUV420P;
    const scaler = new lib.SoftwareScaleContext();
    const source = format as typeof format420;
    scaler.getContext(width, height, source, target.width, target.height, format420, constants.SWS_BICUBIC);
    const scaled = new lib.Frame();
    scaled.alloc();
    scaled.format = format420;
    // Vector code may write past the end of a row: never straight into the canvas.
    scaled.width = target.width;
    scaled.height = target.height;
    if (scaled.getBuffer(64) < 0) throw new Error(`no memory for a tile of ${target.width}x${target.height}`);
    this.#scaler = scaler;
    this.#scaled = scaled;
  }
}
