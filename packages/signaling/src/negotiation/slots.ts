import type { Identifiers } from '@bloom/negotiation';
import type { TrackKind } from '@bloom/sfu';
import type { RemoteTrack } from './remote.js';

/**
 * One m-line from the server to the client. The client keeps its m-lines permanently, so a slot is never removed, only
 * reused.
 */
export interface Slot {
  readonly kind: TrackKind;
  /** Undefined until an offer contains the slot. */
  mid: string | undefined;
  /** The slot's track. A removed track stays until an answer has made the m-line inactive. */
  track: RemoteTrack | undefined;
  /** True while the client may not have applied the answer that made the m-line inactive. */
  doubtful: boolean;
  /** The slot's last track, for the map of mids. */
  lastTrackId: string | undefined;
  /**
   * New for each track. When a slot keeps the former track's SSRCs, Chromium 156 fires the track event and receives the
   * packets but shows no frame of the new track.
   */
  ssrc: number;
  rtxSsrc: number;
  /** Names in `a=msid`. */
  streamId: string;
  msidTrackId: string;
}

export class Slots {
  readonly #identifiers: Identifiers;
  readonly #slots: Slot[] = [];

  constructor(identifiers: Identifiers) {
    this.#identifiers = identifiers;
  }

  [Symbol.iterator](): IterableIterator<Slot> {
    return this.#slots.values();
  }

  /** Assigns a track to a dead slot of its kind that was answered inactive, or else to a new slot. */
  assign(track: RemoteTrack, takenSsrcs: ReadonlySet<number>): void {
    const identity = {
      ssrc: this.#identifiers.ssrc(takenSsrcs),
      rtxSsrc: this.#identifiers.ssrc(takenSsrcs),
      streamId: track.info.streamId ?? this.#identifiers.token(),
      msidTrackId: this.#identifiers.token(),
    };
    const { kind } = track.info;
    const free = this.#slots.find((slot) => slot.kind === kind && isFree(slot));
    if (free === undefined) {
      this.#slots.push({ kind, mid: undefined, track, doubtful: false, lastTrackId: track.trackId, ...identity });
    } else {
      Object.assign(free, identity, { track, lastTrackId: track.trackId });
    }
  }

  /** Counts all slots, including dead ones: the client counts its m-lines, and a smaller number breaks it. */
  count(): Record<TrackKind, number> {
    const count = { audio: 0, video: 0 };
    for (const slot of this.#slots) count[slot.kind] += 1;
    return count;
  }

  byMid(mid: string): Slot | undefined {
    return this.#slots.find((slot) => slot.mid === mid);
  }

  /** Returns the slot for a new m-line of an offer, or undefined when the client offers more than requested. */
  claim(kind: TrackKind, mid: string): Slot | undefined {
    const slot = this.#slots.find((candidate) => candidate.kind === kind && candidate.mid === undefined);
    if (slot !== undefined) slot.mid = mid;
    return slot;
  }
}

/** Without an inactive answer between two tracks, browsers fire no track event for the second. */
function isFree({ mid, track, doubtful }: Slot): boolean {
  return mid !== undefined && track === undefined && !doubtful;
}
