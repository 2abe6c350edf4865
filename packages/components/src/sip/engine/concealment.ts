/** The longest gap that sound is invented for. */
const LONGEST_MS = 60;
/** So much of it at full loudness. */
const LOUD_MS = 10;
/** Two pieces of sound are joined over so long. */
const SEAM_MS = 5;
const HISTORY_MS = 40;
const MATCH_MS = 20;
/** Voices are looked for between 66 and 200 Hz. */
const PITCH_MS = { shortest: 5, longest: 15 };

/**
 * Bridges what is missing in a stream of speech: the last cycle of the voice is repeated and fades out, as ITU-T G.711
 * appendix I does it. Mono, 16 bits, any rate that is a multiple of 8 kHz.
 */
export class Concealer {
  readonly #rate: number;
  readonly #history: Int16Array;
  /** One cycle of the voice before the gap. */
  #cycle: Int16Array | undefined;
  /** Samples of the present gap so far; undefined: there is none. */
  #gap: number | undefined;
  #silent = true;

  constructor(rate: number) {
    this.#rate = rate;
    this.#history = new Int16Array(this.#samples(HISTORY_MS));
  }

  /** Takes the next samples of the stream. After a gap their beginning is joined, in place, to what was invented. */
  heard(pcm: Int16Array): void {
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

  /** Sound in place of the next samples; undefined: the gap is too long, silence is the honest answer. */
  fill(count: number): Int16Array | undefined {
    if (this.#silent) return undefined;
    if (this.#gap === undefined) {
      this.#gap = 0;
      this.#cycle = this.#lastCycle();
    }
    if (this.#gap >= this.#samples(LONGEST_MS)) {
      // Should the stream go on, it fades in from nothing.
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

  /** Its end blends into what came before its beginning, so that it can be repeated without a seam. */
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

  /** The lag at which the end of the history is most like itself. */
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
