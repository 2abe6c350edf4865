/** Tracks endpoints and tracks, and tells every session of each change, as the room actor does. */
import { isDeepStrictEqual } from 'node:util';
import type { Endpoint, EndpointTrack, SessionAction, SessionInput } from '@bloom/rooms';

interface Member {
  metadata: unknown;
  tracks: Map<string, EndpointTrack>;
  tell: (input: SessionInput) => void;
}

export class SimulatedRoom {
  readonly #members = new Map<string, Member>();

  /** Carries out a session's requests to the room. */
  act(id: string, action: SessionAction, tell: (input: SessionInput) => void): void {
    const member = this.#members.get(id);
    if (action.type === 'join') {
      tell({
        type: 'joined',
        endpoints: [...this.#members.keys()].filter((other) => other !== id).map((other) => this.endpoint(other)),
      });
      this.#members.set(id, { metadata: action.metadata, tracks: new Map(), tell });
      return this.#tellOthers(id, { type: 'endpointAdded', endpoint: this.endpoint(id) });
    }
    if (member === undefined) return undefined;
    switch (action.type) {
      case 'leave':
        return this.leave(id);
      case 'setMetadata':
        if (isDeepStrictEqual(member.metadata, action.metadata)) return undefined;
        member.metadata = action.metadata;
        return this.#tellOthers(id, { type: 'endpointUpdated', endpointId: id, metadata: action.metadata });
      case 'publish':
        for (const track of action.tracks) member.tracks.set(track.trackId, track);
        return this.#tellOthers(id, { type: 'tracksAdded', endpointId: id, tracks: action.tracks });
      case 'unpublish':
        for (const trackId of action.trackIds) member.tracks.delete(trackId);
        return this.#tellOthers(id, { type: 'tracksRemoved', endpointId: id, trackIds: action.trackIds });
      case 'setTrackMetadata': {
        const { trackId, metadata } = action;
        const track = member.tracks.get(trackId);
        if (track === undefined || isDeepStrictEqual(track.metadata, metadata)) return undefined;
        member.tracks.set(trackId, { ...track, metadata });
        return this.#tellOthers(id, { type: 'trackUpdated', endpointId: id, trackId, metadata });
      }
      default:
        return undefined;
    }
  }

  leave(id: string): void {
    if (this.#members.delete(id)) this.#tellOthers(id, { type: 'endpointRemoved', endpointId: id });
  }

  ids(): string[] {
    return [...this.#members.keys()];
  }

  endpoint(id: string): Endpoint {
    const member = this.#members.get(id);
    return { id, type: 'webrtc', metadata: member?.metadata, tracks: [...(member?.tracks.values() ?? [])] };
  }

  #tellOthers(id: string, input: SessionInput): void {
    for (const [other, { tell }] of this.#members) if (other !== id) tell(input);
  }
}
