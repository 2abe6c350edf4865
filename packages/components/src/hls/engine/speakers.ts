import { VoiceActivity } from '@bloom/rtp';

/** The quietest level in -dBov. */
const SILENT = 127;

/** Remembers who spoke last, and picks the pictures to show when there are more than tiles. */
export class Speakers {
  readonly #most: number;
  /** By track. */
  readonly #voices = new Map<string, VoiceActivity>();
  /** By publisher: a publisher's pictures and voice are different tracks. */
  readonly #spokeAtMs = new Map<string, number>();
  readonly #origins = new Map<string, string>();
  /** Pictures in tile order. */
  #shown: string[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Sets the tracks and their publishers, replacing the earlier ones. */
  setTracks(tracks: readonly { id: string; origin: string }[]): void {
    this.#origins.clear();
    for (const { id, origin } of tracks) this.#origins.set(id, origin);
    const origins = new Set(this.#origins.values());
    for (const id of this.#voices.keys()) if (!this.#origins.has(id)) this.#voices.delete(id);
    for (const origin of this.#spokeAtMs.keys()) if (!origins.has(origin)) this.#spokeAtMs.delete(origin);
  }

  /** Takes the sound of one packet, -32768..32767. */
  heard(track: string, samples: Int16Array, nowMs: number): void {
    const origin = this.#origins.get(track);
    if (origin === undefined || samples.length === 0) return;
    let voice = this.#voices.get(track);
    if (voice === undefined) this.#voices.set(track, (voice = new VoiceActivity()));
    voice.level(levelOf(samples), nowMs);
    if (voice.status === 'speech') this.#spokeAtMs.set(origin, nowMs);
  }

  /**
   * Returns the pictures to show. When there are too many, a new speaker takes the tile of the publisher that has
   * been silent longest; the others keep theirs.
   */
  choose(pictures: readonly string[]): readonly string[] {
    if (pictures.length <= this.#most) {
      this.#shown = [...pictures];
      return pictures;
    }
    const there = new Set(pictures);
    const shown = this.#shown.filter((id) => there.has(id));
    for (const id of pictures) if (shown.length < this.#most && !shown.includes(id)) shown.push(id);
    for (const id of pictures) {
      if (shown.includes(id)) continue;
      const quietest = shown.reduce(
        (least, one, at) => (this.#spoke(one) <= this.#spoke(shown[least]!) ? at : least),
        0,
      );
      if (this.#spoke(id) > this.#spoke(shown[quietest]!)) shown[quietest] = id;
    }
    this.#shown = shown;

    return shown;
  }

  #spoke(picture: string): number {
    return this.#spokeAtMs.get(this.#origins.get(picture) ?? '') ?? Number.NEGATIVE_INFINITY;
  }
}

/** Returns the loudness as defined by RFC 6464, in -dBov, 0 = loudest. */
function levelOf(samples: Int16Array): number {
  let energy = 0;
  for (const sample of samples) energy += sample * sample;
  const level = -10 * Math.log10(energy / samples.length / 32_768 ** 2);

  return Math.min(SILENT, Math.max(0, Math.round(level)));
}
