import type { Canvas } from '../../av/canvas.js';
import type { Tile } from '../../av/layout.js';
import type { Native } from '../../av/native.js';
import { type PictureCodec, PictureTrack } from '../../av/picture-track.js';
import type { EngineUnit } from './engine-protocol.js';

/** Pictures waiting to be decoded: more means that decoding does not keep up. */
const MAX_QUEUE = 90;
/** Requests for a key frame get lost: they are repeated after this time. */
const ASK_AGAIN_MS = 500;
/** A track that sends nothing for this long gives up its tile. */
const STALE_MS = 10_000;

interface QueuedUnit {
  unit: EngineUnit;
  dueMs: number;
}

/** One live video track: pictures wait for their time, and are shown from a key frame on. */
export class VideoSource {
  readonly #queue: QueuedUnit[] = [];
  readonly #track: PictureTrack;
  readonly #requestKeyFrame: () => void;
  #hasPicture = false;
  #waitsForKey = true;
  #askedMs = Number.NEGATIVE_INFINITY;
  #newestMs = 0;

  constructor(native: Native, requestKeyFrame: () => void) {
    this.#track = new PictureTrack(native, 'SWS_BILINEAR');
    this.#requestKeyFrame = requestKeyFrame;
  }

  /** Queues a picture to be shown from `dueMs` on. */
  push(unit: EngineUnit, dueMs: number, nowMs: number): void {
    this.#newestMs = nowMs;
    if (this.#queue.length >= MAX_QUEUE) {
      this.#queue.length = 0;
      this.#needKey(nowMs);
    }
    this.#queue.push({ unit, dueMs });
  }

  /** Whether it has something to show. */
  visible(nowMs: number): boolean {
    return this.#hasPicture && nowMs - this.#newestMs < STALE_MS;
  }

  /** Decodes the pictures due at `nowMs`, as long as `inTime` says so and one at least; the others stay due. */
  decodeDue(nowMs: number, inTime: () => boolean): void {
    while (this.#queue.length > 0 && this.#queue[0]!.dueMs <= nowMs) {
      this.#decode(this.#queue.shift()!.unit, nowMs);
      if (!inTime()) return;
    }
  }

  draw(canvas: Canvas, tile: Tile, layout: string): void {
    this.#track.draw(canvas, tile, layout);
  }

  close(): void {
    this.#track.close();
  }

  #needKey(nowMs: number): void {
    this.#waitsForKey = true;
    if (nowMs - this.#askedMs < ASK_AGAIN_MS) return;
    this.#askedMs = nowMs;
    this.#requestKeyFrame();
  }

  #decode({ codec, key, data }: EngineUnit, nowMs: number): void {
    if (this.#waitsForKey && !key) return this.#needKey(nowMs);
    this.#waitsForKey = false;
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const pictures = this.#track.decode(codec as PictureCodec, bytes);
    if (pictures === undefined) return this.#needKey(nowMs);
    if (pictures > 0) this.#hasPicture = true;
  }
}
