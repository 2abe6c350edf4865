import type { MediaRoomEvent } from '@bloom/sfu';
import { MAX_ORIGINS } from '../component-schemas.js';
import { jsonEqual } from '../json-equal.js';
import { peerOptions } from '../options.js';
import { done, refusals, type Outcome } from '../outcome.js';
import { closeReason, INTERNAL_ERROR, NODE_STOPPED } from '../peer/close-reason.js';
import { DEFAULT_TTL } from '../peer/credentials.js';
import type { AttachAnswer, AttachRequest, SocketLoss, SocketRef } from '../peer/peer-messages.js';
import { newPeer, peerView, type PeerRecord } from '../peer/peer-record.js';
import type { ClientKind, PeerRequest } from '../peer/peer-session.js';
import type { NamedConfig, PeerView, RoomChanges, RoomView } from '../room-service.js';
import { ClientRequests } from './client-requests.js';
import type { ComponentReport } from './component-kind.js';
import type { ComponentRecord, ComponentTable } from './component-table.js';
import { type ConnectedPeer, Endpoints } from './endpoints.js';
import { Farewell } from './farewell.js';
import { LivekitSockets } from './livekit-sockets.js';
import { MediaEvents } from './media-events.js';
import { Moderation } from './moderation.js';
import { type ComponentEnd, type ConnectionEnd, RoomJournal, type RoomEnd } from './room-journal.js';
import { restorePeer, snapshotOf } from './room-move.js';
import type { RoomSnapshot } from './room-snapshot.js';
import { RoomTimeouts } from './room-timeouts.js';
import type { RoomWorld } from './room-world.js';

export interface RoomMachineOptions {
  config: NamedConfig;
  world: RoomWorld;
  /** Generates the ids of new peers (UUID v4). */
  newId: () => string;
  webrtcEnabled: boolean;
}

/**
 * The authority on one room: its peers and components, their tracks, its end, and the order of notifications
 * (docs/reference/http-api.md, "States and notifications"). Sans-IO: its effects go through `RoomWorld`.
 */
export class RoomMachine {
  /** The backend's decisions about peers and their tracks. */
  readonly moderation: Moderation;
  #config: NamedConfig;
  readonly #world: RoomWorld;
  readonly #newId: () => string;
  readonly #webrtcEnabled: boolean;
  readonly #endpoints: Endpoints;
  readonly #requests: ClientRequests;
  readonly #livekit: LivekitSockets;
  readonly #journal: RoomJournal;
  readonly #timeouts: RoomTimeouts;
  readonly #mediaEvents: MediaEvents;
  #connections = 0;
  #ended = false;
  #view: RoomView | undefined;

  constructor({ config, world, newId, webrtcEnabled }: RoomMachineOptions) {
    this.#config = config;
    this.#world = world;
    this.#newId = newId;
    this.#webrtcEnabled = webrtcEnabled;
    const onChange = (): void => void (this.#view = undefined);
    this.#endpoints = new Endpoints({ roomId: config.roomId, world, onChange });
    this.moderation = new Moderation(this.#endpoints, world);
    this.#timeouts = new RoomTimeouts({ peers: this.#endpoints.peers, world, config: () => this.#config });
    this.#journal = new RoomJournal({
      log: () => world.log,
      now: () => world.now(),
      traffic: (peerId) => world.traffic(peerId),
      measure: (measure) => world.measure(measure),
      endpointOf: (peerId) => world.endpointOf(peerId),
    });
    this.#mediaEvents = new MediaEvents({
      endpoints: this.#endpoints,
      world,
      journal: this.#journal,
      crashPeer: (peerId, reason) => this.crashPeer(peerId, reason),
      crash: () => this.crash(),
      disconnect: (peer, why) => this.#disconnect(peer, why),
    });
    this.#requests = new ClientRequests(this.#endpoints, world, this.#journal);
    this.#livekit = new LivekitSockets(this.#endpoints, world, this.#timeouts);
  }

  get roomId(): string {
    return this.#config.roomId;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Returns the room as the API shows it. Returns the same object until something changes. */
  get view(): RoomView {
    this.#view ??= {
      id: this.roomId,
      config: this.#config,
      components: this.components.views(),
      peers: [...this.#endpoints.peers.values()].map(peerView),
    };

    return this.#view;
  }

  /** Number of track subscriptions, active and pending. */
  get subscriptions(): number {
    return this.#endpoints.subscriptions;
  }

  get components(): ComponentTable {
    return this.#endpoints.components;
  }

  /** Returns the peers that have a socket, for reports. */
  connectedPeers(): ConnectedPeer[] {
    return this.#endpoints.connected();
  }

  /** Returns what the latest client of a peer is; undefined before its first join. */
  clientOf(peerId: string): string | undefined {
    return this.#endpoints.peers.get(peerId)?.client;
  }

  /** Returns the ids of the peers whose latest client is of this kind. */
  peersWithClient(client: string): string[] {
    return [...this.#endpoints.peers.values()].filter((peer) => peer.client === client).map(({ id }) => id);
  }

  get hasLivekit(): boolean {
    return this.#livekit.any;
  }

  /** Returns the websockets of LiveKit's clients that other nodes hold. */
  livekitElsewhere(): SocketRef[] {
    return this.#livekit.elsewhere();
  }

  start(): void {
    this.#world.notify({ type: 'roomCreated', roomId: this.roomId });
    this.#setDataEvents();
    this.#timeouts.restartPeerless();
  }

  /** Continues a room that ran on another node. Publishes nothing, because nothing has happened to its people. */
  resume({ peers, peerlessMs }: RoomSnapshot): void {
    this.#setDataEvents();
    for (const peer of peers) this.moderation.admit(restorePeer(peer, this.#endpoints.peers, this.#world));
    this.#timeouts.resume(peers, peerlessMs);
    this.#endpoints.changed();
  }

  nameStandby(url: string | null): void {
    this.#endpoints.nameStandby(url);
  }

  /** Handles the end of the time in which people were expected back. */
  returnsOver(): void {
    for (const peer of this.#endpoints.peers.values()) {
      if (peer.expected !== undefined && peer.connection === undefined) this.#disconnect(peer, 'connection_lost');
      else this.#endpoints.dropExpected(peer);
    }
    for (const component of this.components.all()) this.#endpoints.dropExpected(component);
  }

  /** Tells everybody of the people who have joined, or how well media flows. */
  tell(news: 'newcomers' | 'qualities'): void {
    if (news === 'newcomers') this.#endpoints.introduceNewcomers();
    else this.#endpoints.tellQualities();
  }

  /** Returns what the room consists of, for another node, or why it cannot move there. */
  snapshot(): Omit<RoomSnapshot, 'invitations'> | string {
    return snapshotOf(this.#endpoints, this.#config, this.#timeouts);
  }

  /** Ends the room here because another node has it. Publishes nothing, unless the farewell reports a loss. */
  giveAway(): Farewell {
    this.#endpoints.introduceNewcomers();
    this.#ended = true;
    this.#timeouts.stopAll();
    for (const component of this.components.all()) this.#endComponent(component, 'room_moved');

    return new Farewell({
      roomId: this.roomId,
      peers: this.#endpoints.peers,
      world: this.#world,
      left: (peerId) => this.#endConnection(peerId, 'room_moved'),
      over: () => this.#journal.roomEnded('moved'),
    });
  }

  /** Changes the configuration. Running timers restart if their time has changed. */
  update(changes: RoomChanges): Outcome<RoomView> {
    const before = this.#config;
    const { metadata, dataEvents, ...config } = { ...this.#config, ...changes };
    this.#config = {
      ...config,
      ...(dataEvents === undefined || dataEvents === null || dataEvents.length === 0 ? {} : { dataEvents }),
      ...(metadata === undefined || metadata === null ? {} : { metadata }),
    };
    if (changes.dataEvents !== undefined) this.#setDataEvents(changes.dataEvents ?? []);
    if (metadata !== undefined && !jsonEqual(before.metadata ?? null, metadata)) {
      this.#endpoints.sendToOthers(undefined, { type: 'roomUpdated', metadata });
    }
    this.#timeouts.changed(before);
    this.#endpoints.changed();

    return done(this.view);
  }

  /** `ttl`: lifetime of the peer's token in seconds. */
  addPeer(given: unknown, { isGuest = false, counts = true } = {}): Outcome<{ peer: PeerView; ttl: number }> {
    const { maxPeers } = this.#config;
    if (maxPeers !== null && counts && this.#endpoints.counted >= maxPeers) return refusals.peerLimit(this.roomId);
    if (!this.#webrtcEnabled) return refusals.peersDisabled();
    const options = peerOptions(given);
    if (!options.ok) return options;

    const { enableSimulcast, metadata, permissions, ttl } = options.value;
    const id = this.#newId();
    const ref = this.#world.startPeer(id, { enableSimulcast });
    const peer = newPeer({ id, ref, metadata, permissions, enableSimulcast, isGuest, counts });
    this.moderation.admit(peer);
    this.#endpoints.peers.set(id, peer);
    this.#endpoints.changed(peer);
    this.#world.notify({ type: 'peerAdded', roomId: this.roomId, peerId: id });
    this.#timeouts.armDisconnect(peer);
    this.#timeouts.restartPeerless(peer);

    return done({ peer: peerView(peer), ttl });
  }

  /** Returns a guest who is expected back, and has not come yet; undefined for anybody else. */
  expectedGuest(peerId: string): { peer: PeerView; ttl: number } | undefined {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer?.isGuest !== true || peer.expected === undefined || peer.connection !== undefined) return undefined;

    return { peer: peerView(peer), ttl: DEFAULT_TTL };
  }

  /** Removes the peer on behalf of the API. */
  removePeer(peerId: string, reason?: string): Outcome<null> {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return refusals.peerNotFound(peerId);

    const socket = peer.connection?.socket;
    if (socket !== undefined) this.#world.closeSocket(socket, 1000, closeReason(reason ?? '', 'Peer removed'));
    this.#dropPeer(peer, 'removed', reason);
    this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId });

    return done(null);
  }

  attach({ peerId, socket, client, replaces, resumes }: AttachRequest): AttachAnswer {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return { result: 'refused', reason: 'peer not found' };
    if (resumes === true) return this.#livekit.resume(peer, socket);
    const current = peer.connection?.socket;
    if (current !== undefined && replaces?.key !== current.key) return { result: 'occupied', by: current };
    if (!peer.connections.take(this.#world.now())) return { result: 'refused', reason: 'too many connections' };
    if (current !== undefined) {
      this.#world.closeSocket(current, 1000, 'Replaced by a new connection');
      this.#disconnect(peer, 'replaced');
    }

    peer.connection = { number: ++this.#connections, socket, client };
    const wasAnnounced = peer.announced;
    peer.announced = true;
    this.#timeouts.stop({ peerId });
    if (peer.counts) this.#timeouts.stop('peerless');
    this.#world.watchSocket(peerId, socket);
    this.#world.attachPeer(peer.ref, peer.connection);
    this.#journal.attached(peerId);
    this.#endpoints.changed(peer);
    if (!wasAnnounced) this.#world.notify({ type: 'peerConnected', roomId: this.roomId, peerId });

    return { result: 'attached', peer: peer.ref };
  }

  /** Handles the end of a socket. Reports of an earlier socket are stale. */
  socketDown(peerId: string, socket: SocketRef, { end, returns }: SocketLoss = {}): void {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer?.connection?.socket.key !== socket.key) return;
    if (peer.connection.client === 'livekit' && (returns === true || end === undefined)) {
      // The node of the websocket stops, or is lost. Media goes on, so the client may resume through another.
      return this.#livekit.socketLost(peer);
    }
    if (returns === true) this.#requests.expectBack(peer);
    this.#disconnect(peer, end ?? 'connection_lost');
  }

  fromPeer(peerId: string, connection: number, request: PeerRequest): void {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer?.connection?.number !== connection) return;

    if (request.type === 'fail') return this.crashPeer(peerId, request.reason);
    if (request.type === 'end') return void this.removePeer(peerId);
    // Rejoining on an open socket costs the room as much as another connection.
    if (request.type === 'join' && peer.leftOn === connection && !peer.connections.take(this.#world.now())) {
      this.#world.closeSocket(peer.connection.socket, 1013, 'too many connections');
      return this.#disconnect(peer, 'closed_by_server');
    }
    return this.#requests.handle(peer, request);
  }

  /** Ends a peer whose media endpoint is beyond repair; `reason` is empty when unknown. */
  crashPeer(peerId: string, reason: string): void {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return;

    const socket = peer.connection?.socket;
    if (socket !== undefined) this.#world.closeSocket(socket, 1011, closeReason(reason));
    this.#dropPeer(peer, 'crashed', reason);
    this.#world.notify({ type: 'peerCrashed', roomId: this.roomId, peerId, reason });
  }

  fromMedia(event: MediaRoomEvent): void {
    this.#mediaEvents.handle(event);
  }

  #setDataEvents(labels = this.#config.dataEvents): void {
    if (labels !== undefined) this.#world.media({ type: 'setDataEvents', labels });
  }

  /** Handles the end of the peerless timeout. */
  peerless(): void {
    if (!this.#timeouts.hasConnectedPeer()) this.remove('no_peers');
  }

  /** Handles the end of the peer's disconnect timeout. */
  peerOverdue(peerId: string): void {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer?.socketLost === true) return void this.removePeer(peerId);
    if (peer === undefined || peer.announced) return;

    this.#dropPeer(peer, 'disconnected_too_long');
    this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId });
  }

  /** Ends the room as `DELETE` does. */
  remove(why: Exclude<RoomEnd, 'crashed' | 'moved'>): void {
    if (this.#ended) return;

    // The SDKs of Jellyfish know only the first; LiveKit's clients start over after the second.
    this.#closeSockets(1000, 'Room stopped', why === 'node_closing' ? 'livekit' : undefined);
    for (const peer of this.#endpoints.peers.values()) {
      this.#endpoints.clearTracks(peer);
      this.#notifyDisconnected(peer);
      this.#endConnection(peer.id, 'room_ended');
      this.#world.notify({ type: 'peerDeleted', roomId: this.roomId, peerId: peer.id });
    }
    for (const component of this.components.all()) {
      this.components.remove(component.id);
      this.#endComponent(component, 'room_ended');
    }
    this.#end('roomDeleted', why);
  }

  /** Ends the room after an internal failure. */
  crash(): void {
    if (this.#ended) return;

    this.#closeSockets(1011, INTERNAL_ERROR);
    for (const peer of this.#endpoints.peers.values()) {
      this.#notifyDisconnected(peer);
      this.#endConnection(peer.id, 'room_crashed');
    }
    for (const component of this.components.all()) this.#world.endComponent(component);
    this.#end('roomCrashed', 'crashed');
  }

  addComponent(component: ComponentRecord): void {
    this.components.add(component);
    this.#journal.componentAdded(component);
    this.#endpoints.changed();
    const endpoint = this.components.endpoint(component);
    this.#endpoints.sendToOthers(component.id, { type: 'endpointAdded', endpoint });
  }

  /** Adds endpoints chosen through the API: all of them, or none when there are too many. */
  subscribeComponent(component: ComponentRecord, origins: readonly string[]): Outcome<null> {
    const added = new Set(origins.filter((origin) => !component.origins.has(origin)));
    if (component.origins.size + added.size > MAX_ORIGINS) return refusals.tooManyOrigins(component.id);
    for (const origin of added) component.origins.add(origin);
    component.running.subscribe?.(origins);
    this.#endpoints.changed();

    return done(null);
  }

  removeComponent(componentId: string): Outcome<null> {
    const component = this.components.get(componentId);
    if (component === undefined) return refusals.componentNotFound(componentId);
    this.#dropComponent(component, 'removed');

    return done(null);
  }

  fromComponent(componentId: string, report: ComponentReport): void {
    const component = this.components.get(componentId);
    if (component === undefined) return;
    const owner = { componentId };

    switch (report.do) {
      case 'publish':
        return this.#endpoints.addTracks(component, owner, report.tracks);
      case 'unpublish':
        return this.#endpoints.takeTracks(component, owner, report.trackIds);
      case 'setProperties':
      case 'playable':
        component.properties = report.properties;
        this.#endpoints.changed();
        if (report.do === 'setProperties') return;
        this.#journal.componentPlayable(component);
        return this.#world.notify({ type: 'hlsPlayable', roomId: this.roomId, componentId });
      case 'finished':
        return this.#dropComponent(component, 'finished');
      case 'crashed':
        this.#journal.componentCrashed(component, report.reason);
        this.#dropComponent(component, 'finished');
        return this.#world.notify({ type: 'componentCrashed', roomId: this.roomId, componentId });
    }
  }

  /** `told`: the kind of clients that learn that the node stops. */
  #closeSockets(code: number, reason: string, told?: ClientKind): void {
    for (const { connection } of this.#endpoints.peers.values()) {
      if (connection === undefined) continue;
      if (connection.client === told) this.#world.closeSocket(connection.socket, 1001, NODE_STOPPED);
      else this.#world.closeSocket(connection.socket, code, reason);
    }
  }

  /** Handles the loss of the socket: the peer stays in the room, disconnected. */
  #disconnect(peer: PeerRecord, why: ConnectionEnd): void {
    // A client that did not join may have given up on this connection and be about to come back over another.
    const isAwaited = peer.connection !== undefined && peer.expected !== undefined && !peer.joined;
    if (!isAwaited) this.#notifyDisconnected(peer);
    peer.connection = undefined;
    peer.socketLost = false;
    this.#world.detachPeer(peer.ref);
    this.#endConnection(peer.id, why);
    this.#endpoints.release(peer);
    if (isAwaited) return;
    this.#endpoints.clearTracks(peer);
    this.#requests.leave(peer);
    this.#endpoints.changed(peer);
    this.#timeouts.armDisconnect(peer);
    this.#timeouts.restartPeerless(peer);
  }

  /** Removes the peer from the room and sends every notification up to PeerDisconnected. */
  #dropPeer(peer: PeerRecord, why: 'removed' | 'crashed' | 'disconnected_too_long', reason?: string): void {
    this.#endpoints.clearTracks(peer);
    this.#notifyDisconnected(peer);
    this.#requests.leave(peer);
    peer.connection = undefined;
    this.#endpoints.peers.delete(peer.id);
    this.components.forget(peer.id);
    this.#endpoints.changed();
    this.#timeouts.stop({ peerId: peer.id });
    this.#endConnection(peer.id, why, reason);
    this.#endpoints.release(peer);
    this.#journal.forget(peer.id);
    this.moderation.forget(peer);
    this.#world.endPeer(peer.ref);
    this.#timeouts.restartPeerless(peer);
  }

  #dropComponent(component: ComponentRecord, why: ComponentEnd): void {
    this.components.remove(component.id);
    this.#endpoints.changed();
    this.#endpoints.sendToOthers(component.id, { type: 'endpointRemoved', endpointId: component.id });
    this.#endComponent(component, why);
  }

  #endComponent(component: ComponentRecord, why: ComponentEnd): void {
    if (why !== 'room_moved') this.#endpoints.componentGone(component);
    this.#world.endComponent(component, why === 'room_moved');
    this.#journal.componentEnded(component, why);
  }

  /** Announces the end of an announced connection exactly once. */
  #notifyDisconnected(peer: PeerRecord): void {
    if (!peer.announced) return;
    peer.announced = false;
    this.#world.notify({ type: 'peerDisconnected', roomId: this.roomId, peerId: peer.id });
  }

  #endConnection(peerId: string, why: ConnectionEnd, reason?: string): void {
    this.#world.closeTransport(peerId);
    this.#journal.disconnected(peerId, why, reason);
  }

  #end(type: 'roomDeleted' | 'roomCrashed', why: RoomEnd): void {
    this.#ended = true;
    // Before the notification, so that its receivers find neither the room nor its load.
    this.#world.ended();
    this.#world.notify({ type, roomId: this.roomId });
    this.#journal.roomEnded(why);
  }
}
