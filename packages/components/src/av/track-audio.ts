/** Samples of one track kept for mixing: 2 s. */
const CAPACITY = 96_000;
/** A track that has drifted this far from its place is moved: 15 ms. */
const TOLERANCE = 720;

/** Positions in the mix, as sample numbers. */
export interface MixPlace {
  /** Next sample of the mix. */
  mixPosition: number;
  /** Place of the sound according to its capture time. */
  position: number;
}

/**
 * Sound of one track on the clock of the mix, stereo at 48 kHz. Positions are sample numbers of the mix. Packets are
 * joined seamlessly by timestamp as long as that keeps them in place. Gaps (lost packets, unsent silence) read as
 * silence.
 */
export class TrackAudio {
  readonly #samples = new Float32Array(CAPACITY * 2);
  /** Offset added to the track's timestamps. */
  #offset: number | undefined;
  #newest = 0;

  /** Writes interleaved samples, -32768..32767, at the track's `timestamp`. Late samples are dropped. */
  write(timestamp: number, pcm: Int16Array, { mixPosition, position }: MixPlace): void {
    const count = pcm.length >> 1;
    let at = timestamp + (this.#offset ?? Number.NaN);
    if (!(Math.abs(at - position) <= TOLERANCE)) {
      at = Math.round(position);
      this.#offset = at - timestamp;
    }
    if (at + count > mixPosition + CAPACITY) return;
    for (let i = Math.max(0, mixPosition - at); i < count; i++) {
      const slot = ((at + i) % CAPACITY) * 2;
      this.#samples[slot] = pcm[2 * i]! / 32768;
      this.#samples[slot + 1] = pcm[2 * i + 1]! / 32768;
    }
    this.#newest = Math.max(this.#newest, at + count);
  }

  /** Adds the samples now due to `left` and `right`, then drops them. */
  addTo(left: Float32Array, right: Float32Array, mixPosition: number): void {
    if (this.#newest <= mixPosition) return;
    for (let i = 0; i < left.length; i++) {
      const slot = ((mixPosition + i) % CAPACITY) * 2;
      left[i]! += this.#samples[slot]!;
      right[i]! += this.#samples[slot + 1]!;
      this.#samples[slot] = 0;
      this.#samples[slot + 1] = 0;
    }
  }
}

const KNEE = 0.8;

/** Leaves quiet sound unchanged and compresses loud sound, so that the sum of many tracks stays within -1..1. */
export function softClip(samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) {
    const value = samples[i]!;
    const loud = Math.abs(value) - KNEE;
    if (loud > 0) samples[i] = Math.sign(value) * (KNEE + (1 - KNEE) * Math.tanh(loud / (1 - KNEE)));
  }
}
