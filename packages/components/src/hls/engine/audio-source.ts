import type { Native } from '../../av/native.js';
import { OpusTrack } from '../../av/opus-track.js';
import { type MixPlace, TrackAudio } from '../../av/track-audio.js';
import type { EngineUnit } from './engine-protocol.js';

/** One Opus track with its decoder and its place in the mix. */
export class AudioSource {
  readonly audio = new TrackAudio();
  readonly #track: OpusTrack;

  constructor(native: Native) {
    this.#track = new OpusTrack(native);
  }

  /** Calls `heard` with the decoded samples, -32768..32767, which are valid only during the call. */
  push(
    { data, timestamp }: EngineUnit,
    { mixPosition, position }: MixPlace,
    heard: (samples: Int16Array) => void,
  ): void {
    let at = timestamp;
    this.#track.decode(Buffer.from(data.buffer, data.byteOffset, data.byteLength), (samples) => {
      heard(samples);
      this.audio.write(at, samples, { mixPosition, position: position + at - timestamp });
      at += samples.length >> 1;
    });
  }

  close(): void {
    this.#track.close();
  }
}
