import type { TrackOwner } from '@bloom/protocol';
import { trackInfo, type PeerRecord } from '../peer/peer-record.js';
import type { EndpointTrack, SessionInput } from '../peer/peer-session.js';
import { ComponentTable, type ComponentRecord } from './component-table.js';
import type { RoomWorld } from './room-world.js';

export interface EndpointsOptions {
  roomId: string;
  world: RoomWorld;
  /** Called whenever the view of the room is out of date. */
  onChange: () => void;
}

/** The peers and components of one room with their tracks, and what the peers' sessions learn of each other. */
export class Endpoints {
  readonly roomId: string;
  readonly peers = new Map<string, PeerRecord>();
  readonly components = new ComponentTable();
  readonly #world: RoomWorld;
  readonly #onChange: () => void;

  constructor({ roomId, world, onChange }: EndpointsOptions) {
    this.roomId = roomId;
    this.#world = world;
    this.#onChange = onChange;
  }

  /** Counts track subscriptions, active and pending: each joined peer receives every track but its own. */
  get subscriptions(): number {
    let joined = 0;
    let ofPeers = 0;
    for (const peer of this.peers.values()) {
      if (peer.joined) joined++;
      ofPeers += peer.tracks.size;
    }

    return joined * (ofPeers + this.components.trackCount) - ofPeers + this.components.subscriptions(this.peers);
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
      if (peer.joined && peer.id !== endpointId) this.#world.sendToPeer(peer.ref, input);
    }
  }

  addTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, tracks: readonly EndpointTrack[]): void {
    if (tracks.length === 0) return;
    for (const track of tracks) endpoint.tracks.set(track.trackId, track);
    this.changed(endpoint);
    this.sendToOthers(endpoint.id, { type: 'tracksAdded', endpointId: endpoint.id, tracks });
    for (const track of tracks) {
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
    if (tracks.length > 0) this.changed(peer);
    this.notifyTracksRemoved({ peerId: peer.id }, tracks);
  }

  notifyTracksRemoved(owner: TrackOwner, tracks: Iterable<EndpointTrack>): void {
    for (const track of tracks) {
      this.#world.notify({ type: 'trackRemoved', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  /** Records a change of the room, of one endpoint if given. */
  changed(endpoint?: PeerRecord | ComponentRecord): void {
    if (endpoint !== undefined && 'connection' in endpoint) endpoint.view = undefined;
    this.#onChange();
    for (const { component, tracks } of this.components.rerouted(this.peers)) {
      this.#world.routeTracks(component, tracks);
    }
    this.#world.changed();
  }
}
