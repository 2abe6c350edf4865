import { Canvas } from '../av/canvas.js';
import { AAC_FRAME } from '../av/codecs.js';
import { gridLayout, MAX_TILES, speakerLayout } from '../av/layout.js';
import type { Native } from '../av/native.js';
import { PictureBudget } from '../av/picture-budget.js';
import { softClip } from '../av/track-audio.js';
import type { MixPicture } from './mix-protocol.js';
import { MixedAudio } from './mixed-audio.js';
import { MixedVideo } from './mixed-video.js';
import { MovieWriter } from './movie-writer.js';
import type { RecordedTrack } from './recording-folder.js';
import { loudness, SpeakerChoice } from './speaker-choice.js';

const FRAMES_PER_SECOND = 30;
const FRAME_MS = 1_000 / FRAMES_PER_SECOND;
const SAMPLES_PER_MS = 48;
const SAMPLES_PER_FRAME = 48_000 / FRAMES_PER_SECOND;
/**
 * Memory for the decoded pictures of files that play at the same time. There may be many, since a mix may take longer
 * than its recording.
 */
const DECODED_BYTES = 512 * 1024 * 1024;

/** A track and the peer or component that published it. */
interface Of<Track> {
  origin: string;
  track: Track;
}

export interface MixOptions {
  native: Native;
  tracks: readonly RecordedTrack[];
  output: string;
  picture: MixPicture;
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
  const { native, tracks, output, picture, onProgress, onLeftOut } = options;
  const budget = new PictureBudget(DECODED_BYTES);
  const videos: Of<MixedVideo>[] = [];
  const audios: Of<MixedAudio>[] = [];
  for (const track of tracks) {
    const { kind, path, origin, startMs } = track;
    if (kind === 'video') {
      const left = { native, budget, onLeftOut: (reason: string) => onLeftOut(path, reason) };
      videos.push({ origin, track: new MixedVideo(track, left) });
    } else audios.push({ origin, track: new MixedAudio(native, path, startMs) });
  }
  const writer = new MovieWriter(native, {
    path: output,
    width: picture.width,
    height: picture.height,
    framesPerSecond: FRAMES_PER_SECOND,
    hasVideo: videos.length > 0,
    hasAudio: audios.length > 0,
  });
  const scene = new Scene(picture);
  let position = 0;
  let frames = 0;
  for (; ; frames++) {
    const atMs = frames * FRAME_MS;
    // Half a frame ahead, so that pictures are early as often as they are late.
    for (const { track } of videos) await track.advance(atMs + FRAME_MS / 2);
    const soundEnd = frames * SAMPLES_PER_FRAME;
    const isOver =
      videos.every(({ track }) => track.finishedAt(atMs + FRAME_MS / 2)) &&
      audios.every(({ track }) => position > 0 && track.finishedAt(Math.max(position, soundEnd)));
    if (isOver) break;
    if (videos.length > 0) writer.picture(scene.draw(videos, atMs + FRAME_MS / 2));
    while (audios.length > 0 && position < soundEnd + SAMPLES_PER_FRAME) {
      const levels = await mix(audios, writer, position);
      scene.hear(levels, position);
      position += AAC_FRAME;
    }
    if (frames % FRAMES_PER_SECOND === 0) onProgress(atMs);
  }
  writer.finish();

  return frames * FRAME_MS;
}

/** Returns how loud each origin is. */
async function mix(
  audios: readonly Of<MixedAudio>[],
  writer: MovieWriter,
  position: number,
): Promise<ReadonlyMap<string, number>> {
  const levels = new Map<string, number>();
  const left = new Float32Array(AAC_FRAME);
  const right = new Float32Array(AAC_FRAME);
  for (const { origin, track } of audios) {
    const own = [new Float32Array(AAC_FRAME), new Float32Array(AAC_FRAME)] as const;
    await track.addTo(...own, position);
    levels.set(origin, Math.max(levels.get(origin) ?? 0, loudness(...own)));
    for (let i = 0; i < AAC_FRAME; i++) {
      left[i]! += own[0][i]!;
      right[i]! += own[1][i]!;
    }
  }
  softClip(left);
  softClip(right);
  writer.sound(left, right);

  return levels;
}

/** The canvas and its current layout. */
class Scene {
  readonly #canvas: Canvas;
  readonly #hasSpeaker: boolean;
  readonly #choice = new SpeakerChoice();
  #layout = '';

  constructor({ layout, width, height }: MixPicture) {
    this.#canvas = new Canvas(width, height);
    this.#hasSpeaker = layout === 'speaker';
  }

  /** `position`: where the sound begins, in samples. */
  hear(levels: ReadonlyMap<string, number>, position: number): void {
    const length = { lengthMs: AAC_FRAME / SAMPLES_PER_MS };
    if (this.#hasSpeaker) this.#choice.hear(levels, { atMs: position / SAMPLES_PER_MS, ...length });
  }

  draw(videos: readonly Of<MixedVideo>[], atMs: number): Buffer {
    const all = [...videos.entries()].filter(([, { track }]) => track.visibleAt(atMs));
    const first = all.findIndex(([, { origin }]) => origin === this.#choice.speaker);
    if (first > 0) all.unshift(...all.splice(first, 1));
    const visible = all.slice(0, MAX_TILES);
    const layout = visible.map(([i]) => i).join(' ');
    if (layout !== this.#layout) this.#canvas.clear();
    this.#layout = layout;
    const tiles = (this.#hasSpeaker ? speakerLayout : gridLayout)(visible.length, this.#canvas);
    for (const [i, tile] of tiles.entries()) visible[i]![1].track.draw(this.#canvas, tile, layout);

    return this.#canvas.buffer;
  }
}
