/** Samples of one track kept for mixing: 2 s. */
const CAPACITY = 96_000;
/** A track that is further from its place than this has drifted, and is placed anew: 15 ms. */
const TOLERANCE = 720;

/** Sample numbers of the mix. */
export interface MixPlace {
  /** What comes next. */
  mixPosition: number;
  /** Where the sound belongs, by the time at which it was captured. */
  position: number;
}

/**
 * The sound of one track on the clock of the mix, stereo at 48 kHz. Positions are sample numbers of the mix. Packets follow
 * each other by their timestamps, without seams, as long as that keeps them where they belong. What the track leaves out
 * (lost packets, silence that is not sent) reads as silence.
 */
export class TrackAudio {
  readonly #samples = new Float32Array(CAPACITY * 2);
  /** Added to the track's timestamps. */
  #offset: number | undefined;
  #newest = 0;

  /** Interleaved samples, -32768..32767, that belong to the track's own `timestamp`. What comes too late is left out. */
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

  /** Adds what is due to `left` and `right`, and forgets it. */
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

/** Leaves quiet sound as it is and bends loud sound so that the sum of many never leaves -1..1. */
export function softClip(samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) {
    const value = samples[i]!;
    const loud = Math.abs(value) - KNEE;
    if (loud > 0) samples[i] = Math.sign(value) * (KNEE + (1 - KNEE) * Math.tanh(loud / (1 - KNEE)));
  }
}
