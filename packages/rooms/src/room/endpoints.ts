import type { TrackOwner } from '@bloom/protocol';
import type { ClientMediaEvent } from '@bloom/sfu';
import { jsonEqual } from '../json-equal.js';
import { peerEndpoint, permissionsOf, shownMetadata, trackInfo, type PeerRecord } from '../peer/peer-record.js';
import type { Endpoint, EndpointTrack, SessionInput } from '../peer/peer-session.js';
import { ComponentTable, type ComponentRecord } from './component-table.js';
import type { RoomWorld } from './room-world.js';

export interface EndpointsOptions {
  roomId: string;
  world: RoomWorld;
  /** Called whenever the view of the room is out of date. */
  onChange: () => void;
}

/** The peers and components of one room with their tracks, and what each peer's session learns about the others. */
export class Endpoints {
  readonly roomId: string;
  readonly peers = new Map<string, PeerRecord>();
  readonly components = new ComponentTable();
  /** Ids of the tracks that currently carry speech, newest last. */
  readonly #speaking = new Set<string>();
  readonly #world: RoomWorld;
  readonly #onChange: () => void;

  constructor({ roomId, world, onChange }: EndpointsOptions) {
    this.roomId = roomId;
    this.#world = world;
    this.#onChange = onChange;
  }

  /**
   * Counts track subscriptions, active and pending: each joined peer receives every track but its own, unless it may
   * not subscribe.
   */
  get subscriptions(): number {
    let tracks = this.components.trackCount;
    for (const peer of this.peers.values()) tracks += peer.tracks.size;
    let count = this.components.subscriptions(this.peers);
    for (const peer of this.peers.values()) if (receivesTracks(peer)) count += tracks - peer.tracks.size;

    return count;
  }

  /** Ids of the tracks that currently carry speech, newest last. */
  get speaking(): string[] {
    return [...this.#speaking];
  }

  /** Returns the id of the endpoint that publishes the track. */
  ownerOf(trackId: string): string | undefined {
    for (const peer of this.peers.values()) if (peer.tracks.has(trackId)) return peer.id;

    return this.components.ownerOf(trackId);
  }

  sendIfJoined(peerId: string, input: SessionInput): void {
    const peer = this.peers.get(peerId);
    if (peer?.joined === true) this.#world.sendToPeer(peer.ref, input);
  }

  sendToOthers(endpointId: string | undefined, input: SessionInput): void {
    for (const peer of this.peers.values()) {
      if (!peer.joined || peer.id === endpointId) continue;
      const visible = permissionsOf(peer).subscribe ? input : withoutTracks(input);
      if (visible !== undefined) this.#world.sendToPeer(peer.ref, visible);
    }
  }

  /** Applies a change in a track's voice activity. */
  voiceChanged(event: ClientMediaEvent & { type: 'voiceActivity' }): void {
    const { trackId, status } = event;
    const owner = this.ownerOf(trackId);
    this.#speaking.delete(trackId);
    if (status === 'speech' && owner !== undefined) this.#speaking.add(trackId);
    this.sendToOthers(owner, event);
  }

  /** Returns all endpoints except the peer's own, as that peer may see them. */
  visibleTo(peer: PeerRecord): Endpoint[] {
    const endpoints = [...this.peers.values()]
      .filter((other) => other !== peer && other.joined && !other.hidden)
      .map(peerEndpoint)
      .concat(this.components.endpoints());

    return permissionsOf(peer).subscribe ? endpoints : endpoints.map((endpoint) => ({ ...endpoint, tracks: [] }));
  }

  /** Adds or removes all tracks of the others for a peer whose permission to subscribe has changed. */
  subscriptionChanged(peer: PeerRecord): void {
    if (!peer.joined) return;
    const receives = receivesTracks(peer);
    for (const other of [...this.peers.values(), ...this.components.all()]) {
      const tracks = [...other.tracks.values()];
      if (other.id === peer.id || tracks.length === 0) continue;
      this.#world.sendToPeer(
        peer.ref,
        receives
          ? { type: 'tracksAdded', endpointId: other.id, tracks }
          : { type: 'tracksRemoved', endpointId: other.id, trackIds: tracks.map(({ trackId }) => trackId) },
      );
    }
  }

  /** Announces the metadata of a peer if it differs from what was shown before. */
  metadataChanged(peer: PeerRecord, before: unknown): void {
    const metadata = shownMetadata(peer);
    if (jsonEqual(before, metadata)) return;
    if (peer.joined && !peer.hidden)
      this.sendToOthers(peer.id, { type: 'endpointUpdated', endpointId: peer.id, metadata });
    this.#world.notify({ type: 'peerMetadataUpdated', roomId: this.roomId, peerId: peer.id, metadata });
  }

  addTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, tracks: readonly EndpointTrack[]): void {
    if (tracks.length === 0) return;
    for (const track of tracks) endpoint.tracks.set(track.trackId, track);
    this.changed(endpoint);
    this.sendToOthers(endpoint.id, { type: 'tracksAdded', endpointId: endpoint.id, tracks });
    for (const track of tracks) {
      this.#world.log.debug('room.track_added', { ...owner, trackId: track.trackId, kind: track.kind });
      this.#world.notify({ type: 'trackAdded', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  takeTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, trackIds: readonly string[]): void {
    const taken: EndpointTrack[] = [];
    for (const trackId of trackIds) {
      const track = endpoint.tracks.get(trackId);
      if (track !== undefined && endpoint.tracks.delete(trackId)) taken.push(track);
    }
    if (taken.length === 0) return;
    if ('moderated' in endpoint) this.#forget(endpoint, taken);

    this.changed(endpoint);
    this.sendToOthers(endpoint.id, {
      type: 'tracksRemoved',
      endpointId: endpoint.id,
      trackIds: taken.map(({ trackId }) => trackId),
    });
    this.notifyTracksRemoved(owner, taken);
  }

  /** Removes all tracks of a peer. The others learn of it from `endpointRemoved`; notifications name each track. */
  clearTracks(peer: PeerRecord): void {
    const tracks = [...peer.tracks.values()];
    peer.tracks.clear();
    this.#forget(peer, tracks);
    if (tracks.length > 0) this.changed(peer);
    this.notifyTracksRemoved({ peerId: peer.id }, tracks);
  }

  notifyTracksRemoved(owner: TrackOwner, tracks: Iterable<EndpointTrack>): void {
    for (const track of tracks) {
      this.#world.log.debug('room.track_removed', { ...owner, trackId: track.trackId, kind: track.kind });
      this.#world.notify({ type: 'trackRemoved', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  /** Forgets ended tracks and the backend's decisions about them: another track may use the same id. */
  #forget({ id, moderated }: PeerRecord, tracks: readonly EndpointTrack[]): void {
    for (const { trackId } of tracks) {
      this.#speaking.delete(trackId);
      if (moderated.get(trackId) === true)
        this.#world.media({ type: 'setTrackBlocked', peerId: id, trackId, blocked: false });
      moderated.delete(trackId);
    }
  }

  /** Records a change to the room, or to one endpoint. */
  changed(endpoint?: PeerRecord | ComponentRecord): void {
    if (endpoint !== undefined && 'connection' in endpoint) endpoint.view = undefined;
    this.#onChange();
    for (const { component, tracks } of this.components.rerouted(this.peers)) {
      this.#world.routeTracks(component, tracks);
    }
    this.#world.changed();
  }
}

function receivesTracks(peer: PeerRecord): boolean {
  return peer.joined && permissionsOf(peer).subscribe;
}

/** Returns what is left of an input for a peer that receives no tracks; undefined when nothing is. */
function withoutTracks(input: SessionInput): SessionInput | undefined {
  if (input.type === 'tracksAdded') return undefined;

  return input.type === 'endpointAdded' ? { ...input, endpoint: { ...input.endpoint, tracks: [] } } : input;
}
