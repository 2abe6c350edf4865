import type { Canvas } from '../av/canvas.js';
import type { Tile } from '../av/layout.js';
import { PictureTrack, type PictureTrackOptions } from '../av/picture-track.js';
import type { RecordedTrack } from './recording-folder.js';
import { h264Of, TimedFrames, type TimedPicture, webmOf } from './timed-frames.js';

/** A picture that lasts longer means the camera was off, so its tile is given up. */
const STALE_MS = 10_000;

/** One recorded file of pictures and its picture at the current time of the mix. */
export class MixedVideo {
  readonly #frames: TimedFrames<TimedPicture>;
  readonly #track: PictureTrack;
  #shownFromMs = Number.POSITIVE_INFINITY;
  #endMs = 0;
  #closed = false;

  constructor(
    { path, codec, startMs }: Pick<RecordedTrack, 'path' | 'codec' | 'startMs'>,
    options: Omit<PictureTrackOptions, 'method' | 'origin'>,
  ) {
    this.#frames = new TimedFrames((codec === 'h264' ? h264Of : webmOf)(path, startMs));
    this.#track = new PictureTrack({ ...options, method: 'SWS_BICUBIC', origin: path });
  }

  /**
   * Decodes the pictures that start at or before `atMs`. One that fails to decode counts as lost: the previous picture
   * stays.
   */
  async advance(atMs: number): Promise<void> {
    for (let frame = await this.#frames.take(atMs); frame !== undefined; frame = await this.#frames.take(atMs)) {
      this.#endMs = frame.atMs + frame.durationMs;
      const pictures = this.#track.decode(frame.codec, frame.data);
      if (pictures !== undefined && pictures > 0) this.#shownFromMs = frame.atMs;
    }
    // Other files need its memory.
    if (this.finishedAt(atMs)) this.#close();
  }

  visibleAt(atMs: number): boolean {
    const isFresh = atMs - this.#shownFromMs < STALE_MS && atMs >= this.#shownFromMs;

    return isFresh && this.#track.hasPicture && !this.finishedAt(atMs);
  }

  finishedAt(atMs: number): boolean {
    return this.#frames.finished && atMs >= this.#endMs;
  }

  draw(canvas: Canvas, tile: Tile, layout: string): void {
    this.#track.draw(canvas, tile, layout);
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#track.close();
  }
}
