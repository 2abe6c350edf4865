import { SAMPLE_RATE } from '../av/codecs.js';
import type { Native } from '../av/native.js';
import { OpusTrack } from '../av/opus-track.js';
import { PcmQueue } from './pcm-queue.js';
import { opusOf, TimedFrames } from './timed-frames.js';

const SAMPLES_PER_MS = SAMPLE_RATE / 1_000;

/** One recorded Opus file, decoded as the mix advances. */
export class MixedAudio {
  readonly #frames: TimedFrames;
  readonly #queue = new PcmQueue();
  readonly #track: OpusTrack;

  constructor(native: Native, path: string, startMs: number) {
    this.#frames = new TimedFrames(opusOf(path, startMs));
    this.#track = new OpusTrack(native);
  }

  /** Adds the samples starting at `position` to both channels. */
  async addTo(left: Float32Array, right: Float32Array, position: number): Promise<void> {
    const untilMs = (position + left.length) / SAMPLES_PER_MS;
    for (let frame = await this.#frames.take(untilMs); frame !== undefined; frame = await this.#frames.take(untilMs)) {
      let at = Math.round(frame.atMs * SAMPLES_PER_MS);
      this.#track.decode(frame.data, (samples) => {
        this.#queue.push(at, samples.slice());
        at += samples.length >> 1;
      });
    }
    this.#queue.addTo(left, right, position);
  }

  /** Returns true when nothing is left at or after `position`. */
  finishedAt(position: number): boolean {
    return this.#frames.finished && this.#queue.end <= position;
  }
}
