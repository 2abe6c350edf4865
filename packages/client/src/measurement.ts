// Loaded when a page begins to watch people.
import type { RoomClient } from './client.js';
import type { CallStats, TrackStats } from './stats.js';

/** How well media passes. With `poor`, the call is hard to follow. */
export type Quality = 'good' | 'fair' | 'poor';

/** One person's measurements. */
export interface PersonStatus {
  readonly peerId: string;
  /** True while a voice is heard. */
  readonly speaking: boolean;
  /** Loudness of the last sound, from 0 to 1 on a linear scale; 0 where the browser does not measure it. */
  readonly level: number;
  /**
   * How well another participant's media arrives here, whichever side has the bad network, or how well this
   * participant's media reaches the server. Null until measured.
   */
  readonly quality: Quality | null;
}

/** Number of periods that the quality covers. */
const WINDOW = 5;
/** Quieter sound (-34 dB) is background. */
const VOICE_LEVEL = 0.02;
/** Limits of `good` and `fair`: share of lost packets, share of time that the picture stood still, and round trip. */
const LIMITS = [
  { quality: 'good', loss: 0.02, frozen: 0.02, roundTripMs: 250 },
  { quality: 'fair', loss: 0.08, frozen: 0.15, roundTripMs: 500 },
] as const;

/** The part of a client that is measured. */
export type MeasuredClient = Pick<RoomClient, 'id' | 'media' | 'peers' | 'localTracks' | 'stats'>;

/** Derives the status of everybody from successive counters. */
export class Measurement {
  /** The last counters, newest first. */
  #samples: readonly CallStats[] = [];
  readonly #periodMs: number;

  /** `periodMs`: time between two counters. */
  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  add({ id, media, peers, localTracks }: Omit<MeasuredClient, 'stats'>, stats: CallStats): PersonStatus[] {
    this.#samples = [stats, ...this.#samples].slice(0, WINDOW + 1);
    const own = new Set(localTracks.flatMap((track) => (track.muted ? [] : (track.id ?? []))));
    const level = levelOf(stats, own);
    const self: PersonStatus = {
      peerId: id,
      speaking: level >= VOICE_LEVEL,
      level,
      quality:
        media.state === 'interrupted' || media.state === 'failed' ? 'poor' : this.#quality(own, stats.roundTripMs),
    };
    const others = peers
      .filter(({ type }) => type === 'webrtc')
      .map(({ id: peerId, tracks }): PersonStatus => {
        const heard = tracks.filter(({ muted }) => !muted);
        const ids = new Set(heard.map((track) => track.id));
        return {
          peerId,
          speaking: heard.some(({ speaking }) => speaking),
          level: levelOf(stats, ids),
          quality: heard.some(({ stalled }) => stalled) ? 'poor' : this.#quality(ids, null),
        };
      });
    const loudness = ({ speaking, level: loud }: PersonStatus): number => (speaking ? 1 + loud : 0);
    const people = [self, ...others];
    people.sort((a, b) => loudness(b) - loudness(a));
    return people;
  }

  #quality(trackIds: ReadonlySet<string>, roundTripMs: number | null): Quality | null {
    const [newest, ...older] = this.#samples;
    const oldest = older.at(-1);
    if (newest === undefined || oldest === undefined) return null;
    let [packets, lost, frozenMs] = [0, 0, 0];
    for (const track of newest.tracks) {
      const former = oldest.tracks.find((one) => one.trackId === track.trackId);
      // A new connection counts from zero.
      if (!trackIds.has(track.trackId) || former === undefined || former.packets > track.packets) continue;
      packets += track.packets - former.packets;
      lost += Math.max(0, track.packetsLost - former.packetsLost);
      frozenMs = Math.max(frozenMs, track.frozenMs - former.frozenMs);
    }
    if (packets + lost === 0) return null;
    const loss = lost / (packets + lost);
    const frozen = frozenMs / (older.length * this.#periodMs);
    const fitting = LIMITS.find(
      (limit) => loss < limit.loss && frozen < limit.frozen && (roundTripMs ?? 0) < limit.roundTripMs,
    );
    return fitting?.quality ?? 'poor';
  }
}

/** Rounded, so that a steady level does not count as a change. */
function levelOf({ tracks }: CallStats, trackIds: ReadonlySet<string>): number {
  const levels = tracks.filter(({ trackId }) => trackIds.has(trackId)).map(({ audioLevel }: TrackStats) => audioLevel);
  return Math.round(Math.max(0, ...levels) * 100) / 100;
}
