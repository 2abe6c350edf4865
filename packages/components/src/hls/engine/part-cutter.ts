import { NalType, nalType, splitAnnexB } from '@bloom/rtp';
import { AAC_FRAME } from '../../av/codecs.js';
import { ComponentError } from '../../errors.js';
import { FRAMES_PER_SEGMENT, HLS_PROFILE } from '../profile.js';
import type { EnginePart } from './engine-protocol.js';
import type { EncodedPicture } from './encoders.js';
import { fragment, lengthPrefixed, type Mp4Sample } from '../../mp4/fragment.js';
import { avcCodecString, initSegment } from '../../mp4/init-segment.js';

const VIDEO_TIMESCALE = 90_000;
const TICKS_PER_FRAME = VIDEO_TIMESCALE / HLS_PROFILE.framesPerSecond;
const SAMPLES_PER_FRAME = HLS_PROFILE.sampleRate / HLS_PROFILE.framesPerSecond;

export interface CutterOptions {
  audioConfig: Buffer;
  onStarted(init: Buffer, codecs: string): void;
  onPart(part: Omit<EnginePart, 'hasPicture'>): void;
}

/**
 * Cuts encoded pictures and sound into parts. Pictures set the length of a part, and its sound covers all of it, so
 * players can play everything the playlist promises.
 */
export class PartCutter {
  readonly #options: CutterOptions;
  #frames = 0;
  #audioFrames = 0;
  #fragments = 0;
  #videoStart = 0;
  #audioStart = 0;
  #video: Mp4Sample[] = [];
  #audio: Mp4Sample[] = [];
  #startedAtMs = 0;
  #announced = false;

  constructor(options: CutterOptions) {
    this.#options = options;
  }

  /** True when the next picture starts a segment and must be a key frame. */
  get wantsKey(): boolean {
    return this.#frames % FRAMES_PER_SEGMENT === 0;
  }

  /** True while the sound ends before the pictures do. */
  get wantsAudio(): boolean {
    return this.#audioFrames * AAC_FRAME < this.#frames * SAMPLES_PER_FRAME;
  }

  addAudio(data: Buffer): void {
    this.#audio.push({ data, duration: AAC_FRAME, key: true });
    this.#audioFrames += 1;
  }

  /** `capturedAtMs` is in Unix milliseconds. `cutWhenFull` cuts the part once the sound has been added. */
  addPicture(picture: EncodedPicture, capturedAtMs: number): void {
    if (this.wantsKey) this.#startedAtMs = capturedAtMs;
    const nals = splitAnnexB(picture.data);
    if (!this.#announced) this.#announce(nals);
    const kept = nals.filter((nal) => !isHeader(nal));
    this.#video.push({ data: lengthPrefixed(kept), duration: TICKS_PER_FRAME, key: picture.key });
    this.#frames += 1;
  }

  cutWhenFull(): void {
    if (this.#video.length === HLS_PROFILE.framesPerPart) this.#cut(this.#frames % FRAMES_PER_SEGMENT === 0);
  }

  /** Cuts the remaining frames into the last part. */
  finish(): void {
    if (this.#video.length > 0) this.#cut(true);
  }

  #cut(last: boolean): void {
    const video = this.#video;
    const audio = this.#audio;
    const first = (this.#videoStart / TICKS_PER_FRAME) % FRAMES_PER_SEGMENT;
    const data = fragment(++this.#fragments, [
      { track: 1, decodeTime: this.#videoStart, samples: video },
      { track: 2, decodeTime: this.#audioStart, samples: audio },
    ]);
    this.#options.onPart({
      segment: Math.floor(this.#videoStart / TICKS_PER_FRAME / FRAMES_PER_SEGMENT),
      part: Math.floor(first / HLS_PROFILE.framesPerPart),
      frames: video.length,
      independent: video[0]!.key,
      last,
      startedAtMs: this.#startedAtMs,
      data,
    });
    this.#videoStart += video.length * TICKS_PER_FRAME;
    this.#audioStart += audio.length * AAC_FRAME;
    this.#video = [];
    this.#audio = [];
  }

  #announce(nals: readonly Buffer[]): void {
    const find = (type: number): Buffer => {
      const found = nals.find((nal) => nalType(nal) === type);
      if (found === undefined) throw new ComponentError('NATIVE_FAILED', 'the first picture has no parameter sets');

      return found;
    };
    const sps = find(NalType.sps);
    const { width, height, sampleRate } = HLS_PROFILE;
    const { audioConfig } = this.#options;
    const init = initSegment([
      { kind: 'video', width, height, timescale: VIDEO_TIMESCALE, sps, pps: find(NalType.pps) },
      { kind: 'audio', sampleRate, audioConfig },
    ]);
    this.#options.onStarted(init, `${avcCodecString(sps)},mp4a.40.2`);
    this.#announced = true;
  }
}

const isHeader = (nal: Buffer): boolean => {
  const type = nalType(nal);

  return type === NalType.sps || type === NalType.pps || type === NalType.aud;
};
