import type { TrackKind } from '@bloom/sfu';
import type { Identifiers } from './identifiers.js';
import type { RemoteTrack } from './remote.js';

/** One m-line from the server to the client. The client keeps it for good, so it is never given up, only reused. */
export interface Slot {
  readonly kind: TrackKind;
  /** Known once an offer came for it. */
  mid: string | undefined;
  /** The track in it; stays when the track is gone until an answer has made the m-line inactive. */
  track: RemoteTrack | undefined;
  /** Last track in it, for the map of mids. */
  lastTrackId: string | undefined;
  /**
   * Of the track in it. A new occupant gets new ones: under the old ones Chromium 156 shows no frame of it, although it
   * fires the track event and receives the packets.
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

  /** Gives a track a dead slot of its kind that was answered inactive, else a new one. */
  assign(track: RemoteTrack, takenSsrcs: ReadonlySet<number>): void {
    const identity = {
      ssrc: this.#identifiers.ssrc(takenSsrcs),
      rtxSsrc: this.#identifiers.ssrc(takenSsrcs),
      streamId: track.info.streamId ?? this.#identifiers.token(),
      msidTrackId: this.#identifiers.token(),
    };
    const { kind } = track.info;
    const free = this.#slots.find((slot) => slot.kind === kind && slot.mid !== undefined && slot.track === undefined);
    if (free === undefined) {
      this.#slots.push({ kind, mid: undefined, track, lastTrackId: track.trackId, ...identity });
    } else {
      Object.assign(free, identity, { track, lastTrackId: track.trackId });
    }
  }

  /** All slots ever, dead ones included: the client counts its m-lines, and a smaller number breaks it. */
  count(): Record<TrackKind, number> {
    const count = { audio: 0, video: 0 };
    for (const slot of this.#slots) count[slot.kind] += 1;
    return count;
  }

  byMid(mid: string): Slot | undefined {
    return this.#slots.find((slot) => slot.mid === mid);
  }

  /** The slot that an m-line new in an offer is for; undefined when the client offers more than it was asked for. */
  claim(kind: TrackKind, mid: string): Slot | undefined {
    const slot = this.#slots.find((candidate) => candidate.kind === kind && candidate.mid === undefined);
    if (slot !== undefined) slot.mid = mid;
    return slot;
  }
}
