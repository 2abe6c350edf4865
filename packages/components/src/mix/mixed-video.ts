import type { CodecContext, Frame, Packet } from 'node-av/lib';
import type { Canvas } from '../hls/engine/canvas.js';
import { fitInto, type Tile } from '../hls/engine/layout.js';
import type { Native } from '../hls/engine/native.js';
import { openDecoder, PictureScaler } from '../hls/engine/pictures.js';
import { picturesOf, TimedFrames } from './timed-frames.js';

/** A picture that lasts longer is of a camera that was off: it gives up its tile. */
const STALE_MS = 10_000;

/** One recorded H.264 file: its picture at the time of the mix, scaled for its tile. */
export class MixedVideo {
  readonly #frames: TimedFrames;
  readonly #decoder: CodecContext;
  readonly #packet: Packet;
  readonly #scaler: PictureScaler;
  /** `receiveFrame` clears its frame even when there is none: the last picture is another one. */
  #picture: Frame;
  #spare: Frame;
  #shownFromMs = Number.POSITIVE_INFINITY;
  #endMs = 0;
  #changed = false;
  #drawnAt = '';

  constructor(native: Native, path: string, startMs: number) {
    const { lib } = native;
    this.#frames = new TimedFrames(picturesOf(path, startMs));
    this.#decoder = openDecoder(native, 'h264');
    this.#scaler = new PictureScaler(native, 'SWS_BICUBIC');
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
    const { width, height } = this.#picture;
    const target = fitInto({ width, height }, tile);
    // A picture of another shape leaves bars of the former one.
    if (this.#scaler.prepare(this.#picture, target)) canvas.clear(tile);
    const scaled = this.#scaler.scale(this.#picture);
    if (scaled === undefined) return;
    canvas.copy(scaled, target);
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
}
