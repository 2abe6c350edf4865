/** Longest gap that is concealed. */
const LONGEST_MS = 60;
/** Time at full volume before the fade-out. */
const LOUD_MS = 10;
/** Duration of a cross-fade. */
const SEAM_MS = 5;
const HISTORY_MS = 40;
const MATCH_MS = 20;
/** Pitch range of voices, 66 to 200 Hz. */
const PITCH_MS = { shortest: 5, longest: 15 };

/**
 * Conceals gaps in speech: repeats the last pitch cycle of the voice and fades it out, like ITU-T G.711 appendix I.
 * Mono, 16 bits, at any rate that is a multiple of 8 kHz.
 */
export class Concealer {
  readonly #rate: number;
  readonly #history: Int16Array;
  /** Last pitch cycle before the gap. */
  #cycle: Int16Array | undefined;
  /** Samples of the current gap so far; undefined without a gap. */
  #gap: number | undefined;
  #silent = true;

  constructor(rate: number) {
    this.#rate = rate;
    this.#history = new Int16Array(this.#samples(HISTORY_MS));
  }

  /** Takes the next samples of the stream. After a gap they are cross-faded in place with the concealment. */
  accept(pcm: Int16Array): void {
    if (this.#gap !== undefined) {
      const seam = Math.min(this.#samples(SEAM_MS), pcm.length);
      for (let i = 0; i < seam; i++) {
        const part = (i + 1) / (seam + 1);
        pcm[i] = Math.round(this.#invented(this.#gap + i) * (1 - part) + (pcm[i] as number) * part);
      }
      this.#gap = undefined;
      this.#cycle = undefined;
    }
    this.#silent = false;
    const history = this.#history;
    if (pcm.length >= history.length) history.set(pcm.subarray(pcm.length - history.length));
    else {
      history.copyWithin(0, pcm.length);
      history.set(pcm, history.length - pcm.length);
    }
  }

  /** Returns concealment for missing samples; undefined when the gap is so long that it should be silent. */
  fill(count: number): Int16Array | undefined {
    if (this.#silent) return undefined;
    if (this.#gap === undefined) {
      this.#gap = 0;
      this.#cycle = this.#lastCycle();
    }
    if (this.#gap >= this.#samples(LONGEST_MS)) {
      // If the stream resumes, it fades in from silence.
      this.#history.fill(0);
      return undefined;
    }
    const pcm = new Int16Array(count);
    for (let i = 0; i < count; i++) pcm[i] = Math.round(this.#invented(this.#gap + i));
    this.#gap += count;
    return pcm;
  }

  #samples(ms: number): number {
    return (this.#rate * ms) / 1000;
  }

  #invented(at: number): number {
    const cycle = this.#cycle;
    if (cycle === undefined) return 0;
    const loud = this.#samples(LOUD_MS);
    const end = this.#samples(LONGEST_MS);
    if (at >= end) return 0;
    const gain = at < loud ? 1 : (end - at) / (end - loud);
    return (cycle[at % cycle.length] as number) * gain;
  }

  /** Blends the cycle's end into the samples before its start, so that it repeats seamlessly. */
  #lastCycle(): Int16Array {
    const history = this.#history;
    const pitch = this.#pitch();
    const cycle = history.slice(history.length - pitch);
    const blend = pitch >> 2;
    for (let i = 0; i < blend; i++) {
      const part = (i + 1) / (blend + 1);
      const before = history[history.length - pitch - blend + i] as number;
      const at = pitch - blend + i;
      cycle[at] = Math.round((cycle[at] as number) * (1 - part) + before * part);
    }
    return cycle;
  }

  /** Returns the lag with the highest autocorrelation in the history. */
  #pitch(): number {
    const history = this.#history;
    const step = this.#rate / 8000;
    const match = this.#samples(MATCH_MS);
    const start = history.length - match;
    let best = this.#samples(PITCH_MS.shortest);
    let bestLikeness = Number.NEGATIVE_INFINITY;
    for (let lag = best; lag <= this.#samples(PITCH_MS.longest); lag += step) {
      let product = 0;
      let energy = 1;
      for (let at = start; at < history.length; at += step) {
        const earlier = history[at - lag] as number;
        product += (history[at] as number) * earlier;
        energy += earlier * earlier;
      }
      const likeness = product / Math.sqrt(energy);
      if (likeness > bestLikeness) [best, bestLikeness] = [lag, likeness];
    }
    return best;
  }
}
