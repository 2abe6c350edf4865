import { isPowerOfTwo } from '@bloom/time';
import { jsonEqual } from '../json-equal.js';
import { knownTracks, permissionsOf, shownMetadata, trackInfo, type PeerRecord } from '../peer/peer-record.js';
import type { EndpointTrack, PeerRequest } from '../peer/peer-session.js';
import { mayPublish } from '../peer/permissions.js';
import type { Endpoints } from './endpoints.js';
import type { RoomJournal } from './room-journal.js';
import { RETURN_MS } from './room-timeouts.js';
import type { RoomWorld } from './room-world.js';

/** Carries out the requests that the clients of a room's peers make. */
export class ClientRequests {
  readonly #endpoints: Endpoints;
  readonly #world: RoomWorld;
  readonly #journal: RoomJournal;
  #idsTaken = 0;

  constructor(endpoints: Endpoints, world: RoomWorld, journal: RoomJournal) {
    this.#endpoints = endpoints;
    this.#world = world;
    this.#journal = journal;
  }

  handle(peer: PeerRecord, request: Exclude<PeerRequest, { type: 'fail' | 'end' }>): void {
    switch (request.type) {
      case 'join':
        return this.#join(peer, request);
      case 'leave':
        if (!peer.joined) return undefined;
        this.#endpoints.clearTracks(peer);
        this.leave(peer);
        peer.leftOn = peer.connection?.number;
        return this.#journal.leftRoom(peer.id);
      case 'setMetadata':
        return this.#setMetadata(peer, request.metadata);
      case 'publish':
        return this.#publish(peer, request.tracks);
      case 'unpublish':
        return this.#endpoints.takeTracks(peer, { peerId: peer.id }, request.trackIds);
      case 'setTrackMetadata':
        return this.#setTrackMetadata(peer, request.trackId, request.metadata);
      case 'setEncoding':
        return this.#setEncoding(peer, request);
      case 'setTrackMuted':
        return this.#endpoints.setMuted(peer, request.trackId, { publisher: request.muted });
      case 'setAudience':
        return peer.joined ? this.#endpoints.setAudience(peer, request.audience) : undefined;
      case 'moved':
        // The room is here, or the client has moved to it.
        return undefined;
    }
  }

  /** Hides the peer from the others. Its tracks have already been removed. */
  leave(peer: PeerRecord): void {
    if (!peer.joined) return;
    peer.joined = false;
    this.#endpoints.changed(peer);
    if (peer.hidden) return;
    this.#endpoints.sendToOthers(peer.id, { type: 'endpointRemoved', endpointId: peer.id });
  }

  /**
   * Handles the stop of the node through which the client was connected: the backend sees the peer as connected, with
   * its tracks, for the time that people of a moved room have to come back. To the others it is away.
   */
  expectBack(peer: PeerRecord): void {
    const tracks = new Map(knownTracks(peer).map((track) => [track.trackId, track]));
    const joined = peer.joined || peer.expected?.joined === true;
    this.leave(peer);
    peer.tracks.clear();
    peer.expected = { joined, tracks };
    this.#endpoints.changed(peer);
    const until = this.#world.now() + RETURN_MS;
    this.#world.expectTracks(peer.ref, { tracks: [...tracks.values()], until });
    this.#world.setTimer('returns', RETURN_MS);
  }

  #join(peer: PeerRecord, request: PeerRequest & { type: 'join' }): void {
    const { metadata, client, hidden = false, name, exempt = false, moves = false } = request;
    if (peer.joined) return;
    const known = peer.expected?.joined === true ? { metadata: shownMetadata(peer) } : undefined;
    if (peer.expected !== undefined) peer.expected.joined = false;
    peer.joined = true;
    peer.client = client;
    peer.hidden = hidden;
    peer.metadata = metadata;
    peer.name = name;
    peer.exempt = exempt;
    peer.moves = moves;
    peer.audience = undefined;
    this.#endpoints.withholdFrom(peer);
    if (peer.connection?.client === 'livekit') this.#world.media({ type: 'watchQuality' });
    this.#journal.joined(peer.id, shownMetadata(peer));
    this.#endpoints.changed(peer);
    const speaking = this.#endpoints.speakingFor(peer);
    this.#world.sendToPeer(peer.ref, {
      type: 'joined',
      endpoints: this.#endpoints.visibleTo(peer),
      ...(speaking.length > 0 ? { speaking } : {}),
    });
    const held = peer.connection?.client === 'http' ? [] : (peer.expected?.messages?.splice(0) ?? []);
    for (const message of held) this.#world.deliver(peer, message, 'websocket');
    this.#endpoints.introduce(peer);
    const { roomId } = this.#endpoints;
    const shown = shownMetadata(peer);
    if (known !== undefined && jsonEqual(known.metadata, shown)) return;
    this.#world.notify({ type: 'peerMetadataUpdated', roomId, peerId: peer.id, metadata: shown });
  }

  #setMetadata(peer: PeerRecord, metadata: unknown): void {
    if (!peer.joined || jsonEqual(peer.metadata, metadata)) return;
    const shown = shownMetadata(peer);
    peer.metadata = metadata;
    this.#endpoints.changed(peer);
    this.#endpoints.metadataChanged(peer, shown);
  }

  #publish(peer: PeerRecord, tracks: readonly EndpointTrack[]): void {
    if (!peer.joined) return;
    // The session may not know yet that a permission was revoked.
    const permitted = tracks.filter(({ kind }) => mayPublish(permissionsOf(peer), kind));
    const fresh = permitted.filter(({ trackId }) => {
      const owner = this.#endpoints.ownerOf(trackId);
      return owner === undefined || (owner === peer.id && !peer.tracks.has(trackId));
    });
    this.#endpoints.addTracks(peer, { peerId: peer.id }, fresh);
    // The peer's session does not know the tracks that the peer may not receive.
    for (const { trackId } of permitted) {
      if (peer.tracks.has(trackId)) continue;
      this.#idTaken(peer.id);
      this.#world.media({ type: 'removeTrack', peerId: peer.id, trackId });
      this.#world.sendToPeer(peer.ref, { type: 'trackRemovedByServer', trackId });
    }
  }

  /** Logs occurrences 1, 2, 4, 8 and so on in the room: a client can offer other peers' ids at any rate. */
  #idTaken(peerId: string): void {
    this.#idsTaken += 1;
    if (isPowerOfTwo(this.#idsTaken)) this.#world.log.warn('peer.track_id_taken', { peerId });
  }

  #setTrackMetadata(peer: PeerRecord, trackId: string, metadata: unknown): void {
    const track = peer.tracks.get(trackId);
    if (track === undefined || jsonEqual(track.metadata, metadata)) return;
    const updated = { ...track, metadata };
    peer.tracks.set(trackId, updated);
    this.#endpoints.changed(peer);
    this.#endpoints.sendToOthers(peer.id, { type: 'trackUpdated', endpointId: peer.id, trackId, metadata });
    const owner = { peerId: peer.id };
    const { roomId } = this.#endpoints;
    this.#world.notify({ type: 'trackMetadataUpdated', roomId, owner, track: trackInfo(updated) });
  }

  #setEncoding(peer: PeerRecord, { trackId, encoding, enabled }: PeerRequest & { type: 'setEncoding' }): void {
    const track = peer.tracks.get(trackId);
    if (track === undefined || track.disabledEncodings.includes(encoding) !== enabled) return;
    const disabledEncodings = enabled
      ? track.disabledEncodings.filter((name) => name !== encoding)
      : [...track.disabledEncodings, encoding];
    peer.tracks.set(trackId, { ...track, disabledEncodings });
    this.#endpoints.sendToOthers(peer.id, { type: 'encodingChanged', endpointId: peer.id, trackId, encoding, enabled });
  }
}
