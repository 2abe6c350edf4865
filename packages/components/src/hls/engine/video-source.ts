import type { CodecContext, Frame, Packet } from 'node-av/lib';
import type { EngineUnit } from './engine-protocol.js';
import type { Canvas } from './canvas.js';
import { fitInto, type Tile } from './layout.js';
import type { Native } from './native.js';
import { openDecoder, PictureScaler } from './pictures.js';

/** Pictures that wait to be decoded: more means that decoding does not keep up. */
const MAX_QUEUE = 90;
/** Requests for a key frame get lost: asked again after this. */
const ASK_AGAIN_MS = 500;
/** A track that sends nothing for so long gives up its tile. */
const STALE_MS = 10_000;

interface QueuedUnit {
  unit: EngineUnit;
  dueMs: number;
}

/** One video track: its decoder, its last picture, and that picture scaled for its tile. */
export class VideoSource {
  private readonly queue: QueuedUnit[] = [];
  private decoder: CodecContext | undefined;
  private codec: EngineUnit['codec'] | undefined;
  private readonly packet: Packet;
  /** `receiveFrame` clears its frame even when there is none: the last picture is another one. */
  private picture: Frame;
  private spare: Frame;
  private hasPicture = false;
  private changed = false;
  private waitsForKey = true;
  private askedMs = Number.NEGATIVE_INFINITY;
  private newestMs = 0;
  private readonly scaler: PictureScaler;
  private drawnAt = '';

  constructor(
    private readonly native: Native,
    private readonly wantKeyFrame: () => void,
  ) {
    const { lib } = native;
    this.scaler = new PictureScaler(native, 'SWS_BILINEAR');
    this.packet = new lib.Packet();
    this.packet.alloc();
    [this.picture, this.spare] = [new lib.Frame(), new lib.Frame()];
    this.picture.alloc();
    this.spare.alloc();
  }

  /** Shown from `dueMs` on. */
  push(unit: EngineUnit, dueMs: number, nowMs: number): void {
    this.newestMs = nowMs;
    if (this.queue.length >= MAX_QUEUE) {
      this.queue.length = 0;
      this.needKey(nowMs);
    }
    this.queue.push({ unit, dueMs });
  }

  /** Frames are missing: nothing is right until the next key frame. */
  gap(nowMs: number): void {
    this.needKey(nowMs);
  }

  /** Whether it has something to show. */
  visible(nowMs: number): boolean {
    return this.hasPicture && nowMs - this.newestMs < STALE_MS;
  }

  decodeDue(nowMs: number): void {
    while (this.queue.length > 0 && this.queue[0]!.dueMs <= nowMs) this.decode(this.queue.shift()!.unit, nowMs);
  }

  /** Draws the last picture unless it is there already. `layout` names the layout that the tile belongs to. */
  draw(canvas: Canvas, tile: Tile, layout: string): void {
    if (!this.changed && this.drawnAt === layout) return;
    const { width, height } = this.picture;
    const target = fitInto({ width, height }, tile);
    const reshaped = this.scaler.prepare(this.picture, target);
    const scaled = this.scaler.scale(this.picture);
    if (scaled === undefined) return;
    // The bars around a picture of another shape, as of a phone that is turned, have what was there before.
    if (reshaped || this.drawnAt !== layout) canvas.clear(tile);
    canvas.copy(scaled, target);
    this.changed = false;
    this.drawnAt = layout;
  }

  close(): void {
    this.decoder?.freeContext();
    this.scaler.close();
    this.picture.free();
    this.spare.free();
    this.packet.free();
  }

  private needKey(nowMs: number): void {
    this.waitsForKey = true;
    if (nowMs - this.askedMs < ASK_AGAIN_MS) return;
    this.askedMs = nowMs;
    this.wantKeyFrame();
  }

  private decode(unit: EngineUnit, nowMs: number): void {
    if (this.waitsForKey && !unit.key) return this.needKey(nowMs);
    if (this.codec !== unit.codec) this.openDecoder(unit.codec);
    this.waitsForKey = false;
    this.packet.data = Buffer.from(unit.data.buffer, unit.data.byteOffset, unit.data.byteLength);
    const sent = this.decoder!.sendPacketSync(this.packet);
    this.packet.unref();
    if (sent < 0) return this.needKey(nowMs);
    while (this.decoder!.receiveFrameSync(this.spare) >= 0) {
      [this.picture, this.spare] = [this.spare, this.picture];
      this.hasPicture = true;
      this.changed = true;
    }
  }

  private openDecoder(codec: EngineUnit['codec']): void {
    this.decoder?.freeContext();
    this.decoder = openDecoder(this.native, codec);
    this.codec = codec;
  }
}
