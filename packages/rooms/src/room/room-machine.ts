import { isDeepStrictEqual } from 'node:util';
import type { MediaRoomEvent } from '@bloom/sfu';
import type { TrackOwner } from '@bloom/protocol';
import { simulcastOption } from '../options.js';
import { done, refusals, type Outcome } from '../outcome.js';
import { closeReason, INTERNAL_ERROR } from '../peer/close-reason.js';
import type { AttachAnswer, AttachRequest, SocketRef } from '../peer/peer-messages.js';
import { newPeer, peerEndpoint, peerView, trackInfo, type PeerRecord } from '../peer/peer-record.js';
import type { EndpointTrack, PeerRequest, SessionInput } from '../peer/peer-session.js';
import type { NamedConfig, PeerView, RoomView } from '../room-service.js';
import type { ComponentReport } from './component-kind.js';
import { ComponentTable, type ComponentRecord } from './component-table.js';
import type { RoomWorld } from './room-world.js';

export interface RoomMachineOptions {
  config: NamedConfig;
  world: RoomWorld;
  /** Ids of new peers; UUID v4. */
  newId: () => string;
  webrtcEnabled: boolean;
}

/**
 * The truth about one room: its peers and components, their tracks, its end, and the order of notifications
 * (docs/reference/http-api.md, "States and notifications"). Sans-IO: its effects go through `RoomWorld`.
 */
export class RoomMachine {
  readonly components = new ComponentTable();
  readonly #config: NamedConfig;
  readonly #world: RoomWorld;
  readonly #newId: () => string;
  readonly #webrtcEnabled: boolean;
  readonly #peers = new Map<string, PeerRecord>();
  #connections = 0;
  #ended = false;
  #view: RoomView | undefined;

  constructor({ config, world, newId, webrtcEnabled }: RoomMachineOptions) {
    this.#config = config;
    this.#world = world;
    this.#newId = newId;
    this.#webrtcEnabled = webrtcEnabled;
  }

  get roomId(): string {
    return this.#config.roomId;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Returns the room as the API shows it: the same object until something changes. */
  get view(): RoomView {
    this.#view ??= {
      id: this.roomId,
      config: this.#config,
      components: this.components.views(),
      peers: [...this.#peers.values()].map(peerView),
    };

    return this.#view;
  }

  /** Counts track subscriptions, active and pending: each joined peer receives every track but its own. */
  get subscriptions(): number {
    let joined = 0;
    let ofPeers = 0;
    for (const peer of this.#peers.values()) {
      if (peer.joined) joined++;
      ofPeers += peer.tracks.size;
    }

    return joined * (ofPeers + this.components.trackCount) - ofPeers + this.components.subscriptions(this.#peers);
  }

  /** Returns the peers that have a socket, for reports. */
  connectedPeers(): { peerId: string; ref: PeerRecord['ref']; metadata: unknown; tracks: readonly EndpointTrack[] }[] {
    return [...this.#peers.values()]
      .filter((peer) => peer.connection !== undefined)
      .map((peer) => ({ peerId: peer.id, ref: peer.ref, metadata: peer.metadata, tracks: [...peer.tracks.values()] }));
  }

  start(): void {
    this.#world.notify({ type: 'roomCreated', roomId: this.roomId });
    this.#restartPeerlessTimer();
  }

  addPeer(options: unknown): Outcome<PeerView> {
    const { maxPeers } = this.#config;
    if (maxPeers !== null && this.#peers.size >= maxPeers) return refusals.peerLimit(this.roomId);
    if (!this.#webrtcEnabled) return refusals.peersDisabled();
    const enableSimulcast = simulcastOption(options);
    if (enableSimulcast === undefined) return refusals.invalidOptions();

    const id = this.#newId();
    const peer = newPeer(id, this.#world.startPeer(id, { enableSimulcast }));
    this.#peers.set(id, peer);
    this.#changed(peer);
    this.#world.notify({ type: 'peerAdded', roomId: this.roomId, peerId: id });
    this.#armDisconnectTimer(peer);
    this.#restartPeerlessTimer();

    return done(peerView(peer));
  }

  /** Removes the peer on behalf of the API. */
  removePeer(peerId: string): Outcome<null> {
    const peer = this.#peers.get(peerId);
    if (peer === undefined) return refusals.peerNotFound(peerId);

    const socket = peer.connection?.socket;
    if (socket !== undefined) this.#world.closeSocket(socket, 1000, 'Peer removed');
    this.#dropPeer(peer);
    this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId });

    return done(null);
  }

  attach({ peerId, socket, replaces }: AttachRequest): AttachAnswer {
    const peer = this.#peers.get(peerId);
    if (peer === undefined) return { result: 'refused', reason: 'peer not found' };

    if (peer.connection !== undefined) {
      const current = peer.connection.socket;
      if (replaces?.key !== current.key) return { result: 'occupied', by: current };
      this.#world.closeSocket(current, 1000, 'Replaced by a new connection');
      this.#disconnect(peer);
    }

    peer.connection = { number: ++this.#connections, socket };
    this.#world.clearTimer({ peerId });
    this.#world.clearTimer('peerless');
    this.#world.watchSocket(peerId, socket);
    this.#world.attachPeer(peer.ref, peer.connection.number, socket);
    this.#changed(peer);
    this.#world.notify({ type: 'peerConnected', roomId: this.roomId, peerId });

    return { result: 'attached', peer: peer.ref };
  }

  /** The socket has ended. Reports of a former socket are stale. */
  socketDown(peerId: string, socket: SocketRef): void {
    const peer = this.#peers.get(peerId);
    if (peer?.connection?.socket.key === socket.key) this.#disconnect(peer);
  }

  fromPeer(peerId: string, connection: number, request: PeerRequest): void {
    const peer = this.#peers.get(peerId);
    if (peer?.connection?.number !== connection) return;

    switch (request.type) {
      case 'join':
        return this.#join(peer, request.metadata);
      case 'leave':
        this.#removeTracks(peer);
        return this.#leave(peer);
      case 'setMetadata':
        return this.#setMetadata(peer, request.metadata);
      case 'publish':
        return this.#publish(peer, request.tracks);
      case 'unpublish':
        return this.#takeTracks(peer, { peerId }, request.trackIds);
      case 'setTrackMetadata':
        return this.#setTrackMetadata(peer, request.trackId, request.metadata);
      case 'setEncoding':
        return this.#setEncoding(peer, request);
      case 'fail':
        return this.crashPeer(peerId, request.reason);
    }
  }

  /** The peer's media endpoint is beyond repair; `reason` is empty when unknown. */
  crashPeer(peerId: string, reason: string): void {
    const peer = this.#peers.get(peerId);
    if (peer === undefined) return;

    const socket = peer.connection?.socket;
    if (socket !== undefined) this.#world.closeSocket(socket, 1011, closeReason(reason));
    this.#dropPeer(peer);
    this.#world.notify({ type: 'peerCrashed', roomId: this.roomId, peerId, reason });
  }

  fromMedia(event: MediaRoomEvent): void {
    if (!this.#world.isCurrent(event)) return;
    switch (event.type) {
      case 'iceConnected':
        return this.#sendIfJoined(event.peerId, { type: 'iceConnected', generation: event.generation });
      case 'dtlsConnected':
        return this.#sendIfJoined(event.peerId, { type: 'dtlsConnected' });
      case 'encodingSwitched': {
        const { trackId, variant, reason } = event;
        return this.#sendIfJoined(event.peerId, { type: 'encodingSwitched', trackId, encoding: variant, reason });
      }
      case 'bandwidthEstimation':
        return this.#sendIfJoined(event.peerId, { type: 'bandwidthEstimation', estimationBps: event.estimationBps });
      case 'voiceActivity': {
        const { trackId, status, peerId } = event;
        const input = { type: 'voiceActivity', trackId, status } as const;
        // The state at the time of subscribing concerns the new subscriber alone.
        return peerId === undefined
          ? this.#sendToOthers(this.#ownerOf(trackId), input)
          : this.#sendIfJoined(peerId, input);
      }
      case 'transportFailed':
        return this.crashPeer(event.peerId, event.reason);
      case 'transportSilent':
        return this.#world.warn('peer.transport_silent', { peerId: event.peerId });
      case 'roomFailed':
        this.#world.warn('room.media_failed', { reason: event.reason });
        return this.crash();
    }
  }

  /** The peerless timer has fired. */
  peerless(): void {
    if (!this.#hasConnectedPeer()) this.remove();
  }

  /** The peer's disconnect timer has fired. */
  peerOverdue(peerId: string): void {
    const peer = this.#peers.get(peerId);
    if (peer === undefined || peer.connection !== undefined) return;

    this.#dropPeer(peer);
    this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId });
  }

  /** Ends the room as `DELETE` does. */
  remove(): void {
    if (this.#ended) return;

    this.#closeSockets(1000, 'Room stopped');
    for (const peer of this.#peers.values()) {
      this.#removeTracks(peer);
      this.#notifyDisconnected(peer);
      this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId: peer.id });
    }
    for (const component of this.components.all()) {
      this.components.remove(component.id);
      this.#notifyTracksRemoved({ componentId: component.id }, component.tracks.values());
      this.#world.endComponent(component);
    }
    this.#end('roomDeleted');
  }

  /** Ends the room after an internal failure. */
  crash(): void {
    if (this.#ended) return;

    this.#closeSockets(1011, INTERNAL_ERROR);
    for (const peer of this.#peers.values()) this.#notifyDisconnected(peer);
    for (const component of this.components.all()) this.#world.endComponent(component);
    this.#end('roomCrashed');
  }

  addComponent(component: ComponentRecord): void {
    this.components.add(component);
    this.#changed();
    this.#sendToOthers(component.id, { type: 'endpointAdded', endpoint: this.components.endpoint(component) });
  }

  /** Adds endpoints chosen over the API. */
  subscribeComponent(component: ComponentRecord, origins: readonly string[]): void {
    for (const origin of origins) component.origins.add(origin);
    component.running.subscribe?.(origins);
    this.#changed();
  }

  removeComponent(componentId: string): Outcome<null> {
    const component = this.components.get(componentId);
    if (component === undefined) return refusals.componentNotFound(componentId);
    this.#dropComponent(component);

    return done(null);
  }

  fromComponent(componentId: string, report: ComponentReport): void {
    const component = this.components.get(componentId);
    if (component === undefined) return;
    const owner = { componentId };

    switch (report.do) {
      case 'publish':
        return this.#addTracks(component, owner, report.tracks);
      case 'unpublish':
        return this.#takeTracks(component, owner, report.trackIds);
      case 'setProperties':
      case 'playable':
        component.properties = report.properties;
        this.#changed();
        if (report.do === 'playable') this.#world.notify({ type: 'hlsPlayable', roomId: this.roomId, componentId });
        return;
      case 'finished':
        return this.#dropComponent(component);
      case 'crashed':
        this.#world.warn('component.crashed', { componentId, reason: report.reason });
        this.#dropComponent(component);
        return this.#world.notify({ type: 'componentCrashed', roomId: this.roomId, componentId });
    }
  }

  #closeSockets(code: number, reason: string): void {
    for (const { connection } of this.#peers.values()) {
      if (connection !== undefined) this.#world.closeSocket(connection.socket, code, reason);
    }
  }

  #join(peer: PeerRecord, metadata: unknown): void {
    if (peer.joined) return;
    peer.joined = true;
    peer.metadata = metadata;
    this.#changed(peer);
    const endpoints = [...this.#peers.values()]
      .filter((other) => other !== peer && other.joined)
      .map(peerEndpoint)
      .concat(this.components.endpoints());
    this.#world.sendToPeer(peer.ref, { type: 'joined', endpoints });
    this.#sendToOthers(peer.id, { type: 'endpointAdded', endpoint: peerEndpoint(peer) });
    this.#world.notify({ type: 'peerMetadataUpdated', roomId: this.roomId, peerId: peer.id, metadata });
  }

  /** Hides the peer from the others. Its tracks have been removed before. */
  #leave(peer: PeerRecord): void {
    if (!peer.joined) return;
    peer.joined = false;
    this.#changed(peer);
    this.#sendToOthers(peer.id, { type: 'endpointRemoved', endpointId: peer.id });
  }

  #setMetadata(peer: PeerRecord, metadata: unknown): void {
    if (!peer.joined || isDeepStrictEqual(peer.metadata, metadata)) return;
    peer.metadata = metadata;
    this.#changed(peer);
    this.#sendToOthers(peer.id, { type: 'endpointUpdated', endpointId: peer.id, metadata });
    this.#world.notify({ type: 'peerMetadataUpdated', roomId: this.roomId, peerId: peer.id, metadata });
  }

  #publish(peer: PeerRecord, tracks: readonly EndpointTrack[]): void {
    if (!peer.joined) return;
    const fresh = tracks.filter(({ trackId }) => this.#ownerOf(trackId) === undefined);
    if (fresh.length < tracks.length) this.#world.warn('peer.track_id_taken', { peerId: peer.id });
    this.#addTracks(peer, { peerId: peer.id }, fresh);
  }

  #addTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, tracks: readonly EndpointTrack[]): void {
    if (tracks.length === 0) return;
    for (const track of tracks) endpoint.tracks.set(track.trackId, track);
    this.#changed(endpoint);
    this.#sendToOthers(endpoint.id, { type: 'tracksAdded', endpointId: endpoint.id, tracks });
    for (const track of tracks) {
      this.#world.notify({ type: 'trackAdded', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  #takeTracks(endpoint: PeerRecord | ComponentRecord, owner: TrackOwner, trackIds: readonly string[]): void {
    const taken: EndpointTrack[] = [];
    for (const trackId of trackIds) {
      const track = endpoint.tracks.get(trackId);
      if (track !== undefined && endpoint.tracks.delete(trackId)) taken.push(track);
    }
    if (taken.length === 0) return;

    this.#changed(endpoint);
    this.#sendToOthers(endpoint.id, {
      type: 'tracksRemoved',
      endpointId: endpoint.id,
      trackIds: taken.map(({ trackId }) => trackId),
    });
    this.#notifyTracksRemoved(owner, taken);
  }

  #setTrackMetadata(peer: PeerRecord, trackId: string, metadata: unknown): void {
    const track = peer.tracks.get(trackId);
    if (track === undefined || isDeepStrictEqual(track.metadata, metadata)) return;
    const updated = { ...track, metadata };
    peer.tracks.set(trackId, updated);
    this.#changed(peer);
    this.#sendToOthers(peer.id, { type: 'trackUpdated', endpointId: peer.id, trackId, metadata });
    const owner = { peerId: peer.id };
    this.#world.notify({ type: 'trackMetadataUpdated', roomId: this.roomId, owner, track: trackInfo(updated) });
  }

  #setEncoding(peer: PeerRecord, { trackId, encoding, enabled }: PeerRequest & { type: 'setEncoding' }): void {
    const track = peer.tracks.get(trackId);
    if (track === undefined || track.disabledEncodings.includes(encoding) !== enabled) return;
    const disabledEncodings = enabled
      ? track.disabledEncodings.filter((name) => name !== encoding)
      : [...track.disabledEncodings, encoding];
    peer.tracks.set(trackId, { ...track, disabledEncodings });
    this.#sendToOthers(peer.id, { type: 'encodingChanged', endpointId: peer.id, trackId, encoding, enabled });
  }

  /** The socket is lost: the peer stays in the room, disconnected. */
  #disconnect(peer: PeerRecord): void {
    this.#notifyDisconnected(peer);
    peer.connection = undefined;
    this.#world.detachPeer(peer.ref);
    this.#world.closeTransport(peer.id);
    this.#removeTracks(peer);
    this.#leave(peer);
    this.#changed(peer);
    this.#armDisconnectTimer(peer);
    this.#restartPeerlessTimer();
  }

  /** Removes the peer from the room, with every notification up to PeerDisconnected. */
  #dropPeer(peer: PeerRecord): void {
    this.#removeTracks(peer);
    this.#notifyDisconnected(peer);
    this.#leave(peer);
    peer.connection = undefined;
    this.#peers.delete(peer.id);
    this.#changed();
    this.#world.clearTimer({ peerId: peer.id });
    this.#world.closeTransport(peer.id);
    this.#world.endPeer(peer.ref);
    this.#restartPeerlessTimer();
  }

  #dropComponent(component: ComponentRecord): void {
    this.components.remove(component.id);
    this.#changed();
    this.#sendToOthers(component.id, { type: 'endpointRemoved', endpointId: component.id });
    this.#notifyTracksRemoved({ componentId: component.id }, component.tracks.values());
    this.#world.endComponent(component);
  }

  /** Announces the end of an established connection, exactly once: callers reset `connection`. */
  #notifyDisconnected(peer: PeerRecord): void {
    if (peer.connection === undefined) return;
    this.#world.notify({ type: 'peerDisconnected', roomId: this.roomId, peerId: peer.id });
  }

  /** Peers learn of the removal from `endpointRemoved`; notifications name each track. */
  #removeTracks(peer: PeerRecord): void {
    const tracks = [...peer.tracks.values()];
    peer.tracks.clear();
    if (tracks.length > 0) this.#changed(peer);
    this.#notifyTracksRemoved({ peerId: peer.id }, tracks);
  }

  #notifyTracksRemoved(owner: TrackOwner, tracks: Iterable<EndpointTrack>): void {
    for (const track of tracks) {
      this.#world.notify({ type: 'trackRemoved', roomId: this.roomId, owner, track: trackInfo(track) });
    }
  }

  #end(type: 'roomDeleted' | 'roomCrashed'): void {
    this.#ended = true;
    // Before the notification, so that its receivers find neither the room nor its load.
    this.#world.ended();
    this.#world.notify({ type, roomId: this.roomId });
  }

  #sendIfJoined(peerId: string, input: SessionInput): void {
    const peer = this.#peers.get(peerId);
    if (peer?.joined === true) this.#world.sendToPeer(peer.ref, input);
  }

  #sendToOthers(endpointId: string | undefined, input: SessionInput): void {
    for (const peer of this.#peers.values()) {
      if (peer.joined && peer.id !== endpointId) this.#world.sendToPeer(peer.ref, input);
    }
  }

  #ownerOf(trackId: string): string | undefined {
    for (const peer of this.#peers.values()) if (peer.tracks.has(trackId)) return peer.id;

    return this.components.ownerOf(trackId);
  }

  #hasConnectedPeer(): boolean {
    return this.connectedPeers().length > 0;
  }

  /** Restarts whenever no peer is connected and a peer was added, disconnected or removed. */
  #restartPeerlessTimer(): void {
    const { peerlessPurgeTimeout } = this.#config;
    if (peerlessPurgeTimeout === null || this.#hasConnectedPeer()) return;
    this.#world.setTimer('peerless', peerlessPurgeTimeout * 1_000);
  }

  #armDisconnectTimer(peer: PeerRecord): void {
    const { peerDisconnectedTimeout } = this.#config;
    if (peerDisconnectedTimeout === null) return;
    this.#world.setTimer({ peerId: peer.id }, peerDisconnectedTimeout * 1_000);
  }

  #changed(endpoint?: PeerRecord | ComponentRecord): void {
    if (endpoint !== undefined && 'connection' in endpoint) endpoint.view = undefined;
    this.#view = undefined;
    for (const { component, tracks } of this.components.rerouted(this.#peers)) {
      this.#world.routeTracks(component, tracks);
    }
    this.#world.changed();
  }
}
