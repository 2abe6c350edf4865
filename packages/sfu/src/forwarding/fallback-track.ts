import type { InboundTrack } from '../media-engine.js';
import { PublishedTrack } from './published-track.js';

/** How long a fallback without subscribers is still sent, since subscribers come back. */
const LINGER_MS = 3_000;

/**
 * Returns the key of a track among those of its room or client: a track and its fallback have the same id, which the
 * client chooses.
 */
export function keyOf({ trackId, fallback }: Pick<InboundTrack, 'trackId' | 'fallback'>): string {
  return `${fallback === true ? '+' : '-'}${trackId}`;
}

/** Returns the track with this id, and its fallback, as far as they are in the map, which has the keys of `keyOf`. */
export function tracksWithId<T>(tracks: ReadonlyMap<string, T>, trackId: string): T[] {
  return [keyOf({ trackId }), keyOf({ trackId, fallback: true })].flatMap((key) => tracks.get(key) ?? []);
}

/** The second encoding of a track: its publisher sends it only while it is reported to be wanted. */
export class FallbackTrack extends PublishedTrack {
  #wanted = false;
  #neededAtMs = Number.NEGATIVE_INFINITY;

  override get isWanted(): boolean {
    return this.#wanted;
  }

  /** Lets the encoder start while the subscriber connects. */
  override expect(nowMs: number): void {
    this.#neededAtMs = nowMs;
  }

  override tick(nowMs: number): void {
    if (this.#isNeeded()) this.#neededAtMs = nowMs;
    const wanted = nowMs - this.#neededAtMs < LINGER_MS;
    // What is not wanted is not sent: its variants must not count as inactive when it begins again.
    if (!wanted || !this.#wanted) this.activity.restartWindow(nowMs);
    if (wanted !== this.#wanted) {
      this.#wanted = wanted;
      this.owner.emit({ type: 'fallbackWanted', peerId: this.owner.peerId, trackId: this.trackId, wanted });
    }
    super.tick(nowMs);
  }

  /** True while a client here gets it, or it crosses to another worker. */
  #isNeeded(): boolean {
    for (const { selection } of this.slots) if (!selection.paused) return true;
    return this.crossings.some(({ length }) => length > 0);
  }
}
