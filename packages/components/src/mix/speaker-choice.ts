/** Root mean square of sound that counts as speech, of a full scale of 1: -46 dB. */
const SPEECH = 0.005;
/** A speaker keeps the place for this long, so that a cough does not take it. */
const HOLD_MS = 2_000;
/** Time constant over which loudness is averaged. */
const AVERAGE_MS = 300;
/** Somebody has to be this much louder than the speaker. */
const LOUDER = 1.5;

/** Chooses who speaks from how loud everybody is. */
export class SpeakerChoice {
  readonly #levels = new Map<string, number>();
  #speaker: string | undefined;
  #since = Number.NEGATIVE_INFINITY;

  /** The origin that spoke last; undefined before anybody did. */
  get speaker(): string | undefined {
    return this.#speaker;
  }

  /** `levels`: root mean square of each origin's sound in the last `lengthMs`, which end at `atMs`. */
  hear(levels: ReadonlyMap<string, number>, { atMs, lengthMs }: { atMs: number; lengthMs: number }): void {
    const weight = Math.min(1, lengthMs / AVERAGE_MS);
    for (const origin of new Set([...levels.keys(), ...this.#levels.keys()])) {
      const before = this.#levels.get(origin) ?? 0;
      this.#levels.set(origin, before + ((levels.get(origin) ?? 0) - before) * weight);
    }
    const [loudest] = [...this.#levels].toSorted(([, a], [, b]) => b - a);
    if (loudest === undefined || loudest[1] < SPEECH || loudest[0] === this.#speaker) return;
    const current = this.#speaker === undefined ? 0 : (this.#levels.get(this.#speaker) ?? 0);
    if (atMs - this.#since < HOLD_MS || loudest[1] < current * LOUDER) return;
    this.#speaker = loudest[0];
    this.#since = atMs;
  }
}

/** Returns the root mean square of a sound in stereo. */
export function loudness(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += left[i]! ** 2 + right[i]! ** 2;

  return Math.sqrt(sum / Math.max(1, 2 * left.length));
}
