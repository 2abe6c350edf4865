import type { Canvas } from '../../av/canvas.js';
import type { Tile } from '../../av/layout.js';
import type { Native } from '../../av/native.js';
import type { PictureBudget } from '../../av/picture-budget.js';
import { PictureTrack } from '../../av/picture-track.js';
import type { EngineUnit } from './engine-protocol.js';

/** Limit for pictures waiting to be decoded. Reaching it means that decoding cannot keep up. */
const MAX_QUEUE = 90;
/** Key frame requests can get lost, so they are repeated after this time. */
const ASK_AGAIN_MS = 500;
/** The same for pictures that found no memory because others use it. */
const ASK_FOR_ROOM_MS = 5_000;
/** A track that sends nothing for this long loses its tile. */
const STALE_MS = 10_000;

interface QueuedUnit {
  unit: EngineUnit;
  dueMs: number;
}

/** Sums over all tracks. */
export interface VideoSums {
  /** Bytes of pictures waiting to be decoded. */
  waitingBytes: number;
  /** Pictures withheld from decoders because they exceed a limit or memory is short. */
  picturesLeftOut: number;
}

export interface VideoSourceOptions {
  native: Native;
  budget: PictureBudget;
  sums: VideoSums;
  /** Publisher of the track. */
  origin: string;
  requestKeyframe(): void;
  /** Called once per cause when the track's pictures are left out. */
  onLeftOut(reason: string): void;
}

/** One live video track. Its pictures wait for their time and are shown from a key frame on. */
export class VideoSource {
  readonly #queue: QueuedUnit[] = [];
  readonly #track: PictureTrack;
  readonly #sums: VideoSums;
  readonly #requestKeyframe: () => void;
  #waitingBytes = 0;
  #waitsForKey = true;
  #askedMs = Number.NEGATIVE_INFINITY;
  #newestMs = 0;

  constructor({ native, budget, sums, origin, requestKeyframe, onLeftOut }: VideoSourceOptions) {
    this.#track = new PictureTrack({ native, method: 'SWS_BILINEAR', budget, origin, onLeftOut });
    this.#sums = sums;
    this.#requestKeyframe = requestKeyframe;
  }

  /** Bytes of this track's pictures waiting to be decoded. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Queues a picture to be shown at `dueMs`. */
  push(unit: EngineUnit, dueMs: number, nowMs: number): void {
    this.#newestMs = nowMs;
    if (this.#queue.length >= MAX_QUEUE) this.drop(nowMs);
    this.#queue.push({ unit, dueMs });
    this.#wait(unit.data.length);
  }

  /** Drops the waiting pictures and resumes at the next key frame. */
  drop(nowMs: number): void {
    this.#clear();
    this.#needKey(nowMs);
  }

  /** True while there is a recent picture to show. */
  visible(nowMs: number): boolean {
    return this.#track.hasPicture && nowMs - this.#newestMs < STALE_MS;
  }

  /** Decodes the pictures due at `nowMs` while `inTime` returns true, but at least one; the rest stay due. */
  decodeDue(nowMs: number, inTime: () => boolean): void {
    while (this.#queue.length > 0 && this.#queue[0]!.dueMs <= nowMs) {
      const { unit } = this.#queue.shift()!;
      this.#wait(-unit.data.length);
      this.#decode(unit, nowMs);
      if (!inTime()) return;
    }
  }

  draw(canvas: Canvas, tile: Tile, layout: string): void {
    this.#track.draw(canvas, tile, layout);
  }

  close(): void {
    this.#clear();
    this.#track.close();
  }

  #clear(): void {
    this.#queue.length = 0;
    this.#wait(-this.#waitingBytes);
  }

  #wait(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#sums.waitingBytes += bytes;
  }

  #needKey(nowMs: number): void {
    this.#waitsForKey = true;
    const { leftOut } = this.#track;
    // Pictures beyond a limit can return only when their publisher changes them, which starts with a key frame anyway.
    if (leftOut === 'limit') return;
    if (nowMs - this.#askedMs < (leftOut === undefined ? ASK_AGAIN_MS : ASK_FOR_ROOM_MS)) return;
    this.#askedMs = nowMs;
    this.#requestKeyframe();
  }

  #decode({ codec, key, data }: EngineUnit, nowMs: number): void {
    if (!key && (this.#waitsForKey || this.#track.leftOut !== undefined)) {
      if (this.#track.leftOut !== undefined) this.#sums.picturesLeftOut += 1;
      return this.#needKey(nowMs);
    }
    if (codec === 'opus') return;
    this.#waitsForKey = false;
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const pictures = this.#track.decode(codec, bytes);
    if (this.#track.leftOut !== undefined) this.#sums.picturesLeftOut += 1;
    if (pictures === undefined) this.#needKey(nowMs);
  }
}
