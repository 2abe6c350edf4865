import { jsonEqual } from '../json-equal.js';
import type { EndpointTrack, PeerRequest, SessionAction, SessionInput } from './peer-session.js';

type Recognised = Pick<EndpointTrack, 'trackId' | 'kind' | 'metadata'>;

/** The tracks that a peer of a moved room published before. */
export interface ExpectedTracks {
  readonly tracks: readonly Recognised[];
  /** Monotonic milliseconds; later tracks are new ones. */
  readonly until: number;
}

/**
 * Keeps the ids of a peer's tracks when its room has moved. Clients that reconnect may publish the same camera under
 * another id, as the SDKs of Jellyfish do; to the room and the media plane it is still the track with the former id.
 */
export class TrackNames {
  #expected: readonly Recognised[] = [];
  #until = 0;
  /** Pairs of exchanged ids, in both directions: no two tracks can have one id, whatever the client chooses. */
  readonly #names = new Map<string, string>();

  constructor(expected?: ExpectedTracks) {
    if (expected !== undefined) this.expect(expected);
  }

  expect({ tracks, until }: ExpectedTracks): void {
    this.#expected = tracks;
    this.#until = until;
  }

  /** Forgets the ids of a connection or membership that has ended. One that has published nothing changes nothing. */
  reset(): void {
    this.#names.clear();
  }

  /** Returns what the session of the client wants, in the room's ids. `nowMs`: monotonic. */
  toRoom(actions: readonly SessionAction[], nowMs: number): readonly SessionAction[] {
    if (this.#expected.length > 0) {
      if (nowMs >= this.#until) this.#expected = [];
      // The media plane hears of a track before the room does, so all actions are searched first.
      for (const action of actions) if (action.type === 'publish') this.#recognise(action.tracks);
    }
    if (this.#names.size === 0) return actions;

    return actions.map((action) => this.#renamed(action));
  }

  /** Returns an input to the session in the client's ids. */
  toClient(input: SessionInput): SessionInput {
    switch (input.type) {
      case 'trackMutedByServer':
      case 'trackRemovedByServer':
      case 'fallbackWanted':
      case 'layersNeeded':
        return { ...input, trackId: this.#nameOf(input.trackId) };
      default:
        return input;
    }
  }

  #recognise(tracks: readonly Recognised[]): void {
    const ids = new Set(tracks.map(({ trackId }) => trackId));
    const others = this.#expected.filter(({ trackId }) => ids.has(trackId));
    this.#expected = this.#expected.filter((before) => !others.includes(before));
    for (const { trackId, kind, metadata } of tracks) {
      if (others.some((before) => before.trackId === trackId) || this.#names.has(trackId)) continue;
      const former = this.#expected.find((before) => before.kind === kind && jsonEqual(before.metadata, metadata));
      if (former === undefined) continue;
      this.#expected = this.#expected.filter((before) => before !== former);
      this.#names.set(trackId, former.trackId).set(former.trackId, trackId);
    }
  }

  #nameOf(trackId: string): string {
    return this.#names.get(trackId) ?? trackId;
  }

  #rename<T extends { trackId: string }>(named: T): T {
    return { ...named, trackId: this.#nameOf(named.trackId) };
  }

  #renamed(action: SessionAction): SessionAction {
    switch (action.type) {
      case 'negotiate': {
        const { negotiation } = action;
        return {
          ...action,
          negotiation: { ...negotiation, inbound: negotiation.inbound.map((track) => this.#rename(track)) },
        };
      }
      case 'media':
        return 'trackId' in action.command ? { ...action, command: this.#rename(action.command) } : action;
      case 'publish':
        return { ...action, tracks: action.tracks.map((track) => this.#rename(track)) };
      case 'unpublish':
        return { ...action, trackIds: action.trackIds.map((trackId) => this.#nameOf(trackId)) };
      case 'setAudience':
        return { ...action, audience: this.#audience(action) };
      case 'setTrackMetadata':
      case 'setEncoding':
      case 'setTrackMuted':
        return this.#rename(action);
      default:
        return action;
    }
  }

  #audience({ audience }: PeerRequest & { type: 'setAudience' }): typeof audience {
    if (audience === null) return null;

    return audience.map(([name, ids]) => [name, ids === 'all' ? ids : ids.map((trackId) => this.#nameOf(trackId))]);
  }
}
