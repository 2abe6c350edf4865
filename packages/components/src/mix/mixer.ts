import { Canvas } from '../av/canvas.js';
import { AAC_FRAME } from '../av/codecs.js';
import { gridLayout, MAX_TILES } from '../av/layout.js';
import type { Native } from '../av/native.js';
import { PictureBudget } from '../av/picture-budget.js';
import { softClip } from '../av/track-audio.js';
import { MixedAudio } from './mixed-audio.js';
import { MixedVideo } from './mixed-video.js';
import { MovieWriter } from './movie-writer.js';
import type { RecordedTrack } from './recording-folder.js';

const WIDTH = 1_280;
const HEIGHT = 720;
const FRAMES_PER_SECOND = 30;
const FRAME_MS = 1_000 / FRAMES_PER_SECOND;
const SAMPLES_PER_FRAME = 48_000 / FRAMES_PER_SECOND;
/**
 * Memory for the decoded pictures of files that play at the same time. There may be many, since a mix may take longer
 * than its recording.
 */
const DECODED_BYTES = 512 * 1024 * 1024;

export interface MixOptions {
  native: Native;
  tracks: readonly RecordedTrack[];
  output: string;
  /** Called after each second of the mix. */
  onProgress(doneMs: number): void;
  /** Called once per cause when a file's pictures are left out. */
  onLeftOut(path: string, reason: string): void;
}

/**
 * Mixes the tracks into one movie with all sound and a picture grid whose layout follows the tracks. Returns the length
 * in ms.
 */
export async function mixTracks(options: MixOptions): Promise<number> {
  const { native, tracks, output, onProgress, onLeftOut } = options;
  const budget = new PictureBudget(DECODED_BYTES);
  const videos: MixedVideo[] = [];
  const audios: MixedAudio[] = [];
  for (const { kind, path, startMs } of tracks) {
    if (kind === 'video')
      videos.push(new MixedVideo(path, startMs, { native, budget, onLeftOut: (reason) => onLeftOut(path, reason) }));
    else audios.push(new MixedAudio(native, path, startMs));
  }
  const writer = new MovieWriter(native, {
    path: output,
    width: WIDTH,
    height: HEIGHT,
    framesPerSecond: FRAMES_PER_SECOND,
    hasVideo: videos.length > 0,
    hasAudio: audios.length > 0,
  });
  const grid = new Grid();
  let position = 0;
  let frames = 0;
  for (; ; frames++) {
    const atMs = frames * FRAME_MS;
    // Half a frame ahead, so that pictures are early as often as they are late.
    for (const video of videos) await video.advance(atMs + FRAME_MS / 2);
    const soundEnd = frames * SAMPLES_PER_FRAME;
    const isOver =
      videos.every((video) => video.finishedAt(atMs + FRAME_MS / 2)) &&
      audios.every((audio) => position > 0 && audio.finishedAt(Math.max(position, soundEnd)));
    if (isOver) break;
    if (videos.length > 0) writer.picture(grid.draw(videos, atMs + FRAME_MS / 2));
    while (audios.length > 0 && position < soundEnd + SAMPLES_PER_FRAME) {
      await mix(audios, writer, position);
      position += AAC_FRAME;
    }
    if (frames % FRAMES_PER_SECOND === 0) onProgress(atMs);
  }
  writer.finish();

  return frames * FRAME_MS;
}

async function mix(audios: readonly MixedAudio[], writer: MovieWriter, position: number): Promise<void> {
  const left = new Float32Array(AAC_FRAME);
  const right = new Float32Array(AAC_FRAME);
  for (const audio of audios) await audio.addTo(left, right, position);
  softClip(left);
  softClip(right);
  writer.sound(left, right);
}

/** The canvas and its current layout. */
class Grid {
  readonly #canvas = new Canvas(WIDTH, HEIGHT);
  #layout = '';

  draw(videos: readonly MixedVideo[], atMs: number): Buffer {
    const visible = [...videos.entries()].filter(([, video]) => video.visibleAt(atMs)).slice(0, MAX_TILES);
    const layout = visible.map(([i]) => i).join(' ');
    if (layout !== this.#layout) this.#canvas.clear();
    this.#layout = layout;
    const tiles = gridLayout(visible.length, this.#canvas);
    for (const [i, [, video]] of visible.entries()) video.draw(this.#canvas, tiles[i]!, layout);

    return this.#canvas.buffer;
  }
}
