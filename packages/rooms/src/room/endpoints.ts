import type { TrackOwner } from '@bloom/protocol';
import type { ClientMediaEvent, ConnectionQuality, MediaRoomEvent } from '@bloom/sfu';
import { jsonEqual } from '../json-equal.js';
import {
  claims,
  knownTracks,
  peerEndpoint,
  permissionsOf,
  shownMetadata,
  trackInfo,
  type PeerRecord,
  worstQuality,
} from '../peer/peer-record.js';
import type { Audience, Endpoint, EndpointTrack, KnownTrack, Mutes, SessionInput } from '../peer/peer-session.js';
import { inputFor, mayReceive, shownTracks } from './audience.js';
import { ComponentTable, type ComponentRecord } from './component-table.js';
import { Newcomers } from './newcomers.js';
import type { RoomWorld } from './room-world.js';

/**
 * How long changes of qualities are gathered: the media plane judges everybody in one turn, and would have each session
 * told of each of them.
 */
const GATHER_QUALITIES_MS = 500;

export interface EndpointsOptions {
  roomId: string;
  world: RoomWorld;
  /** Called whenever the view of the room is out of date. */
  onChange: () => void;
}

export interface ConnectedPeer {
  peerId: string;
  ref: PeerRecord['ref'];
  metadata: unknown;
  tracks: readonly EndpointTrack[];
}

/** The peers and components of one room with their tracks, and what each peer's session learns about the others. */
export class Endpoints {
  readonly roomId: string;
  readonly peers = new Map<string, PeerRecord>();
  readonly components = new ComponentTable();
  /** Ids of the tracks that currently carry speech, newest last. */
  readonly #speaking = new Set<string>();
  readonly #newcomers = new Newcomers();
  /** Peers whose quality has changed since LiveKit's clients were told. */
  readonly #judged = new Set<PeerRecord>();
  #standby: SessionInput | undefined;
  readonly #world: RoomWorld;
  readonly #onChange: () => void;

  constructor({ roomId, world, onChange }: EndpointsOptions) {
    this.roomId = roomId;
    this.#world = world;
    this.#onChange = onChange;
  }

  /**
   * Counts track subscriptions, active and pending: each joined peer receives every track but its own, unless it may
   * not subscribe. Those that their publisher withholds count, and those of peers that are expected back.
   */
  get subscriptions(): number {
    let tracks = this.components.trackCount;
    for (const peer of this.peers.values()) tracks += trackCount(peer);
    let count = this.components.subscriptions(this.peers);
    for (const peer of this.peers.values()) if (willReceiveTracks(peer)) count += tracks - trackCount(peer);

    return count;
  }

  /** Number of peers that count against the limit of the room. */
  get counted(): number {
    let count = 0;
    for (const peer of this.peers.values()) if (peer.counts) count++;

    return count;
  }

  /** Returns the peers that have a socket. */
  connected(): ConnectedPeer[] {
    return [...this.peers.values()]
      .filter((peer) => peer.connection !== undefined)
      .map((peer) => ({
        peerId: peer.id,
        ref: peer.ref,
        metadata: shownMetadata(peer),
        tracks: [...peer.tracks.values()],
      }));
  }

  /** Ids of the tracks that currently carry speech, newest last, as far as the peer may know. */
  speakingFor(peer: PeerRecord): string[] {
    return [...this.#speaking].filter((trackId) => {
      const owner = this.peers.get(this.ownerOf(trackId) ?? '');
      return owner === undefined || mayReceive(owner, trackId, peer);
    });
  }

  /** Returns the id of the endpoint that publishes the track. */
  ownerOf(trackId: string): string | undefined {
    for (const peer of this.peers.values())
      if (peer.tracks.has(trackId) || peer.expected?.tracks.has(trackId) === true) return peer.id;

    return this.components.ownerOf(trackId);
  }

  sendIfJoined(peerId: string, input: SessionInput): void {
    const peer = this.peers.get(peerId);
    if (peer?.joined === true) this.#world.sendToPeer(peer.ref, input);
  }

  /** Tells everybody where the room goes on if its node is lost, those who join later too. null: nobody knows. */
  nameStandby(url: string | null): void {
    this.#standby = url === null ? undefined : { type: 'standby', url };
    if (this.#standby !== undefined) this.sendToOthers(undefined, this.#standby);
  }

  /** Tells the others of a peer that has joined, and has been shown all who joined before; soon in a large room. */
  introduce(peer: PeerRecord): void {
    if (this.#standby !== undefined) this.#world.sendToPeer(peer.ref, this.#standby);
    this.#newcomers.add(peer.id, peer.hidden ? undefined : peerEndpoint(peer));
    if (this.#newcomers.isEmpty) return;
    const waitMs = this.#newcomers.waitMs(this.peers.size, this.#world.now());
    if (waitMs === 0) this.introduceNewcomers();
    else this.#world.setTimer('newcomers', waitMs);
  }

  introduceNewcomers(): void {
    if (this.#newcomers.isEmpty) return;
    const unknownTo = this.#newcomers.introduce(this.#world.now());
    for (const peer of this.peers.values()) {
      if (!peer.joined) continue;
      for (const endpoint of unknownTo(peer.id)) {
        const visible = inputFor(peer, this.peers.get(endpoint.id), { type: 'endpointAdded', endpoint });
        if (visible !== undefined) this.#world.sendToPeer(peer.ref, visible);
      }
    }
  }

  sendToOthers(endpointId: string | undefined, input: SessionInput): void {
    if (endpointId !== undefined && this.#newcomers.has(endpointId)) this.introduceNewcomers();
    const owner = endpointId === undefined ? undefined : this.peers.get(endpointId);
    for (const peer of this.peers.values()) {
      if (!peer.joined || peer.id === endpointId) continue;
      const visible = inputFor(peer, owner, input);
      if (visible !== undefined) this.#world.sendToPeer(peer.ref, visible);
    }
  }

  /** Records whether the client accepts the backend's messages on a data channel. */
  setMessageChannel(event: MediaRoomEvent & { type: 'messageChannel' }): void {
    const peer = this.peers.get(event.peerId);
    if (peer !== undefined) peer.messageChannel = event.open ? event : undefined;
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
      .map((other) => {
        const endpoint = peerEndpoint(other);
        return { ...endpoint, tracks: shownTracks(other, endpoint.tracks, peer) };
      })
      .concat(this.components.endpoints());

    return permissionsOf(peer).subscribe ? endpoints : endpoints.map((endpoint) => ({ ...endpoint, tracks: [] }));
  }

  /** Adds or removes all tracks of the others for a peer whose permission to subscribe has changed. */
  subscriptionChanged(peer: PeerRecord): void {
    if (!peer.joined) return;
    const receives = receivesTracks(peer);
    for (const other of [...this.peers.values(), ...this.components.all()]) {
      const all = [...other.tracks.values()];
      const tracks = 'audience' in other ? shownTracks(other, all, peer) : all;
      if (other.id === peer.id || tracks.length === 0) continue;
      this.#world.sendToPeer(
        peer.ref,
        receives
          ? { type: 'tracksAdded', endpointId: other.id, tracks }
          : { type: 'tracksRemoved', endpointId: other.id, trackIds: tracks.map(({ trackId }) => trackId) },
      );
    }
  }

  /** Sets who may receive the peer's tracks. Takes effect in the media plane first, whatever the receivers do. */
  setAudience(owner: PeerRecord, audience: Audience | null): void {
    if (owner.audience === undefined && audience === null) return;
    const trackIds = [...owner.tracks.keys()];
    const receivers = [...this.peers.values()].filter((peer) => peer !== owner);
    const before = new Map(receivers.map((peer) => [peer, trackIds.filter((id) => !mayReceive(owner, id, peer))]));
    owner.audience =
      audience === null
        ? undefined
        : new Map(audience.map(([name, ids]) => [name, ids === 'all' ? ids : new Set(ids)]));
    for (const [peer, withheld] of before) {
      this.#withhold(owner, trackIds, peer);
      if (!receivesTracks(peer)) continue;
      const now = new Set(trackIds.filter((id) => !mayReceive(owner, id, peer)));
      const lost = [...now].filter((id) => !withheld.includes(id));
      const gained = withheld.filter((id) => !now.has(id));
      if (lost.length > 0) this.#accessChanged(owner, peer, { trackIds: lost, withheld: true });
      if (gained.length > 0) this.#accessChanged(owner, peer, { trackIds: gained, withheld: false });
    }
    this.changed(owner);
  }

  /** Withholds from a peer that joins what it may not receive. */
  withholdFrom(peer: PeerRecord): void {
    for (const owner of this.peers.values()) if (owner !== peer) this.#withhold(owner, owner.tracks.keys(), peer);
  }

  /** Forgets how the media of a peer flows whose transport has ended, and what is withheld from it. */
  release(peer: PeerRecord): void {
    const { id: peerId, withheld } = peer;
    peer.qualities = {};
    peer.quality = undefined;
    for (const trackId of withheld) this.#world.media({ type: 'setTrackWithheld', peerId, trackId, withheld: false });
    withheld.clear();
  }

  #withhold(owner: PeerRecord, trackIds: Iterable<string>, peer: PeerRecord): void {
    for (const trackId of trackIds) {
      const withheld = !mayReceive(owner, trackId, peer);
      if (withheld === peer.withheld.has(trackId)) continue;
      if (withheld) peer.withheld.add(trackId);
      else peer.withheld.delete(trackId);
      this.#world.media({ type: 'setTrackWithheld', peerId: peer.id, trackId, withheld });
    }
  }

  #accessChanged(
    owner: PeerRecord,
    { ref, name }: PeerRecord,
    { trackIds, withheld }: { trackIds: readonly string[]; withheld: boolean },
  ): void {
    const endpointId = owner.id;
    const tracks = trackIds.flatMap((trackId) => owner.tracks.get(trackId) ?? []);
    if (name !== undefined) this.#world.sendToPeer(ref, { type: 'tracksWithheld', endpointId, trackIds, withheld });
    else if (withheld) this.#world.sendToPeer(ref, { type: 'tracksRemoved', endpointId, trackIds });
    else this.#world.sendToPeer(ref, { type: 'tracksAdded', endpointId, tracks });
  }

  /** Announces the metadata of a peer if it differs from what was shown before. */
  metadataChanged(peer: PeerRecord, before: unknown): void {
    const metadata = shownMetadata(peer);
    if (jsonEqual(before, metadata)) return;
    if (peer.joined && !peer.hidden)
      this.sendToOthers(peer.id, { type: 'endpointUpdated', endpointId: peer.id, metadata, ...claims(peer) });
    this.#world.notify({ type: 'peerMetadataUpdated', roomId: this.roomId, peerId: peer.id, metadata });
  }

  /** Updates who has muted a track of the peer, and tells the others. */
  setMuted(peer: PeerRecord, trackId: string, by: Mutes): void {
    const track = peer.tracks.get(trackId);
    if (track === undefined) return;
    const muted = { ...track.muted, ...by };
    if (muted.publisher === track.muted?.publisher && muted.server === track.muted?.server) return;
    peer.tracks.set(trackId, { ...track, muted });
    this.changed(peer);
    this.sendToOthers(peer.id, { type: 'trackMuted', endpointId: peer.id, trackId, muted });
  }

  /** Records whether pictures of a track or of its fallback are missing, and tells the others. */
  setStalled({ trackId, stalled, fallback }: MediaRoomEvent & { type: 'trackStalled' }): void {
    const owner = [...this.peers.values(), ...this.components.all()].find(({ tracks }) => tracks.has(trackId));
    const track = owner?.tracks.get(trackId);
    const state = fallback === true ? 'fallbackStalled' : 'stalled';
    if (owner === undefined || track === undefined || (track[state] ?? false) === stalled) return;
    owner.tracks.set(trackId, { ...track, [state]: stalled });
    const which = fallback === true ? { fallback } : {};
    this.sendToOthers(owner.id, { type: 'trackStalled', endpointId: owner.id, trackId, stalled, ...which });
  }

  /** Records how well a peer's media flows. LiveKit's clients, which show it, are told together with other changes. */
  qualityChanged({ peerId, quality, receiver }: MediaRoomEvent & { type: 'connectionQuality' }): void {
    const peer = this.peers.get(peerId);
    if (peer === undefined) return;
    const before = peer.quality;
    peer.qualities[receiver === true ? 'receiver' : 'first'] = quality;
    peer.quality = worstQuality(Object.values(peer.qualities));
    if (peer.quality === undefined || peer.quality === before) return;
    if (this.#judged.size === 0) this.#world.setTimer('qualities', GATHER_QUALITIES_MS);
    this.#judged.add(peer);
  }

  /** Tells LiveKit's clients whose media flows differently since the last call. */
  tellQualities(): void {
    const judged = [...this.#judged].filter((peer) => this.peers.get(peer.id) === peer);
    this.#judged.clear();
    if (judged.some(({ id }) => this.#newcomers.has(id))) this.introduceNewcomers();
    const shown = judged.filter(({ hidden }) => !hidden).flatMap(qualityOf);
    for (const peer of this.peers.values()) {
      if (!peer.joined || peer.connection?.client !== 'livekit') continue;
      const qualities = peer.hidden && judged.includes(peer) ? [...shown, ...qualityOf(peer)] : shown;
      if (qualities.length > 0) this.#world.sendToPeer(peer.ref, { type: 'qualitiesChanged', qualities });
    }
  }

  addTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, tracks: readonly EndpointTrack[]): void {
    if (tracks.length === 0) return;
    for (const track of tracks) endpoint.tracks.set(track.trackId, track);
    // Taken out before anybody looks at the endpoint, which would have these tracks twice.
    const back = new Map(tracks.map(({ trackId }) => [trackId, takeExpected(endpoint, trackId)]));
    if ('audience' in endpoint && endpoint.audience !== undefined) {
      for (const peer of this.peers.values())
        if (peer !== endpoint) this.#withhold(endpoint, endpoint.tracks.keys(), peer);
    }
    this.changed(endpoint);
    this.sendToOthers(endpoint.id, { type: 'tracksAdded', endpointId: endpoint.id, tracks });
    for (const track of tracks) {
      this.#world.log.debug('room.track_added', { ...owner, trackId: track.trackId, kind: track.kind });
      const before = back.get(track.trackId);
      if (before === undefined)
        this.#world.notify({ type: 'trackAdded', roomId: this.roomId, owner, track: trackInfo(track) });
      else this.#cameBack(endpoint, owner, { before, track });
    }
  }

  /** Takes back a track that the endpoint published where the room ran before. */
  #cameBack(
    endpoint: PeerRecord | ComponentRecord,
    owner: TrackOwner,
    { before, track }: { before: KnownTrack; track: EndpointTrack },
  ): void {
    const { trackId } = track;
    if (!jsonEqual(before.metadata, track.metadata))
      this.#world.notify({ type: 'trackMetadataUpdated', roomId: this.roomId, owner, track: trackInfo(track) });
    if (!('moderated' in endpoint)) return;
    const { id: peerId, moderated } = endpoint;
    const blocked = moderated.get(trackId);
    if (blocked === true) {
      this.#world.media({ type: 'setTrackBlocked', peerId, trackId, blocked });
      this.sendIfJoined(peerId, { type: 'trackMutedByServer', trackId, muted: blocked });
    }
    if (blocked !== undefined) this.setMuted(endpoint, trackId, { server: blocked });
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
    const tracks = knownTracks(peer);
    peer.expected = undefined;
    peer.tracks.clear();
    // They may still flow, and are about to be withheld from nobody.
    if (peer.audience !== undefined)
      for (const { trackId } of tracks) this.#world.media({ type: 'removeTrack', peerId: peer.id, trackId });
    this.#forget(peer, tracks);
    if (tracks.length > 0) this.changed(peer);
    this.notifyTracksRemoved({ peerId: peer.id }, tracks);
  }

  /** Removes the tracks that an endpoint of a moved room has not published again, or one of them. */
  dropExpected(endpoint: PeerRecord | ComponentRecord, trackId?: string): void {
    if (endpoint.expected === undefined) return;
    const tracks = [...endpoint.expected.tracks.values()].filter(
      (track) => trackId === undefined || track.trackId === trackId,
    );
    if (trackId === undefined) endpoint.expected = undefined;
    else endpoint.expected.tracks.delete(trackId);
    if ('moderated' in endpoint) this.#forget(endpoint, tracks);
    this.changed(endpoint);
    this.notifyTracksRemoved('running' in endpoint ? { componentId: endpoint.id } : { peerId: endpoint.id }, tracks);
  }

  /** Reports that the tracks of a component have ended with it. */
  componentGone(component: ComponentRecord): void {
    this.notifyTracksRemoved({ componentId: component.id }, knownTracks(component));
  }

  notifyTracksRemoved(owner: TrackOwner, tracks: Iterable<KnownTrack>): void {
    for (const track of tracks) {
      this.#world.log.debug('room.track_removed', { ...owner, trackId: track.trackId, kind: track.kind });
      this.#world.notify({ type: 'trackRemoved', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  /** Forgets ended tracks and the backend's decisions about them: another track may use the same id. */
  #forget({ id, moderated }: PeerRecord, tracks: readonly KnownTrack[]): void {
    for (const { trackId } of tracks) {
      this.#speaking.delete(trackId);
      if (moderated.get(trackId) === true)
        this.#world.media({ type: 'setTrackBlocked', peerId: id, trackId, blocked: false });
      moderated.delete(trackId);
      for (const peer of this.peers.values()) {
        if (!peer.withheld.delete(trackId)) continue;
        this.#world.media({ type: 'setTrackWithheld', peerId: peer.id, trackId, withheld: false });
      }
    }
  }

  /** Records a change to the room, or to one endpoint. */
  changed(endpoint?: PeerRecord | ComponentRecord): void {
    if (endpoint !== undefined && 'connection' in endpoint) endpoint.view = undefined;
    this.#onChange();
    for (const { component, tracks, withheld } of this.components.rerouted(this.peers)) {
      if (withheld > 0) {
        const { id: componentId, type: kind } = component;
        this.#world.log.warn('component.tracks_encrypted', { componentId, kind, tracks: withheld });
      }
      this.#world.routeTracks(component, tracks);
    }
    this.#world.changed();
  }
}

/** Returns a track that an endpoint of a moved room had before and that is no longer expected, because it is back. */
function takeExpected({ expected }: PeerRecord | ComponentRecord, trackId: string): KnownTrack | undefined {
  const track = expected?.tracks.get(trackId);
  expected?.tracks.delete(trackId);

  return track;
}

/** Number of tracks that the peer publishes or is expected to publish again. */
function trackCount({ tracks, expected }: PeerRecord): number {
  return tracks.size + (expected?.tracks.size ?? 0);
}

function willReceiveTracks(peer: PeerRecord): boolean {
  return receivesTracks(peer) || (peer.expected?.joined === true && permissionsOf(peer).subscribe);
}

function receivesTracks(peer: PeerRecord): boolean {
  return peer.joined && permissionsOf(peer).subscribe;
}

function qualityOf({ id, quality }: PeerRecord): [endpointId: string, quality: ConnectionQuality][] {
  return quality === undefined ? [] : [[id, quality]];
}
