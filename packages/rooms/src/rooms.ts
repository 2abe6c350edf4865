import { randomUUID } from 'node:crypto';
import { ActorError, newRequestId, type ActorRef, type ActorSystem, type Behaviour, type Sender } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import type { MediaEngine, MediaRoom, MediaRoomEvent, RoomMediaStats } from '@bloom/sfu';
import { attachSocket } from './attach.js';
import type { ComponentKind, ComponentKinds } from './component-kind.js';
import { refusals, unwrap, type Outcome } from './outcome.js';
import type { CreatePeerSession } from './peer-session.js';
import { issuePeerToken, verifyPeerToken } from './peer-token.js';
import { roomBehaviour, roomMailbox, type RoomState } from './room-actor.js';
import type { RoomMachine } from './room-machine.js';
import type { RoomProtocol, RoomRef, SocketRef } from './room-messages.js';
import {
  RoomError,
  type AttachedPeer,
  type AttachRefusal,
  type ComponentType,
  type PeerSocket,
  type RoomConfig,
  type RoomService,
  type RoomView,
} from './room-service.js';

/** Requests wait this long for a room; clients give up after 5 s. */
const REQUEST_TIMEOUT_MS = 4_000;
/** A report goes without what a peer does not say by then. */
const DESCRIBE_TIMEOUT_MS = 500;

/** What placement compares between nodes: kept by the rooms, never asked for. */
export interface RoomsLoad {
  /** Active and pending track subscriptions. */
  forwardedTracks: number;
  /** Rooms, those being created included. */
  rooms: number;
}

export interface PeerReport {
  peerId: string;
  metadata: unknown;
  /** Metadata of the tracks it publishes. */
  tracks: readonly { trackId: string; metadata: unknown }[];
  /** Its last offer and answer. */
  descriptions: { offer?: string; answer?: string };
}

/** A room with at least one connected peer, for the metrics report. */
export interface RoomReport {
  roomId: string;
  peers: readonly PeerReport[];
  /** undefined when the media plane did not answer. */
  media: RoomMediaStats | undefined;
}

/** In order per room. A webhook URL is registered before the room's first event, and `roomCreated` is that. */
export type RoomEvents = (
  notification: Notification,
  meta: { webhookUrl: string | null /** Of the request that brought it about. */; requestId: string | undefined },
) => void;

export interface RoomsOptions {
  system: ActorSystem;
  engine: MediaEngine;
  createSession: CreatePeerSession;
  events: RoomEvents;
  log: Log;
  /** `JF_HOST`: where clients reach this node. */
  address: string;
  /** `JF_SECRET_KEY_BASE` */
  secretKeyBase: string;
  /** `JF_WEBRTC_USED` */
  webrtcEnabled: boolean;
  /** Kinds that this node runs; all others are disabled. */
  componentKinds?: readonly ComponentKind[];
  /** Milliseconds since the epoch; the clock of `system`. */
  now?: () => number;
  newId?: () => string;
}

/** The rooms of this node, and the service that the faces ask. */
export interface Rooms extends RoomService {
  load(): RoomsLoad;
  readonly draining: boolean;
  views(): RoomView[];
  roomRef(roomId: string): RoomRef | undefined;
  /** As `attachPeer` with a token that has been verified, for a room of another node. */
  attachTo(room: RoomRef, peerId: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal>;
  /** Takes no new rooms from now on; those that run go on. `forGood`: whatever `undrain` says, because the node ends. */
  drain(forGood?: boolean): void;
  /** Takes new rooms again. */
  undrain(): void;
  /** The media of a room of this node. */
  media(roomId: string): MediaRoom | undefined;
  /** What a component of a room of this node tells of itself beyond its view. */
  componentState(roomId: string, componentId: string): ComponentState | undefined;
  /** Ends every room as `deleteRoom` does. */
  deleteAll(): Promise<void>;
  reports(): Promise<RoomReport[]>;
}

export interface ComponentState {
  /** null = it receives no tracks. */
  subscribeMode: 'auto' | 'manual' | null;
  /** Endpoints chosen by hand. */
  origins: readonly string[];
  /** Tracks that it receives now. */
  receives: readonly { trackId: string; origin: string }[];
  /** Of its own kind; null: nothing. */
  details: unknown;
}

interface Entry {
  ref: RoomRef | undefined;
  machine: RoomMachine | undefined;
  media: MediaRoom | undefined;
  subscriptions: number;
}

export function createRooms(options: RoomsOptions): Rooms {
  return new LocalRooms(options);
}

/** Owns all rooms and does nothing but start them, so that a fault of a room is never in the way of another. */
type OwnerProtocol = {
  create: (message: { behaviour: Behaviour<RoomProtocol, RoomState>; roomId: string }) => RoomRef;
};

const owner: Behaviour<OwnerProtocol, null> = {
  kind: 'rooms',
  init: () => null,
  handlers: {
    create: (_state, { behaviour, roomId }, context) =>
      context.spawn(behaviour, { name: roomId, mailbox: roomMailbox, logFields: { roomId } }),
  },
};

/** What the rooms of a node are, in whosever name they are asked. */
interface Shared {
  readonly owner: ActorRef<OwnerProtocol>;
  readonly entries: Map<string, Entry>;
  /** Of the peers of this node's rooms. */
  readonly sockets: Set<SocketRef>;
  readonly kinds: ComponentKinds;
  subscriptions: number;
  draining: 'no' | 'for now' | 'for good';
}

function openShared({ system, componentKinds = [] }: RoomsOptions): Shared {
  const ref = system.spawn(owner, { name: 'rooms' });
  system.register('rooms', ref);

  const kinds = new Map(componentKinds.map((kind) => [kind.type, kind]));

  return { owner: ref, entries: new Map(), sockets: new Set(), kinds, subscriptions: 0, draining: 'no' };
}

class LocalRooms implements Rooms {
  readonly #options: RoomsOptions;
  readonly #shared: Shared;
  readonly #system: ActorSystem;
  /** Sends in the name of the request, if there is one. */
  readonly #sender: Sender;
  readonly #log: Log;
  readonly #entries: Map<string, Entry>;
  readonly #now: () => number;
  readonly #newId: () => string;

  constructor(options: RoomsOptions, shared = openShared(options), requestId?: string) {
    const { system, log } = options;
    this.#options = options;
    this.#shared = shared;
    this.#entries = shared.entries;
    this.#system = system;
    this.#sender = requestId === undefined ? system : system.forRequest(requestId, 'rooms');
    this.#log = requestId === undefined ? log : log.child({ requestId });
    this.#now = options.now ?? (() => Date.now());
    this.#newId = options.newId ?? (() => randomUUID());
  }

  forRequest(requestId: string): RoomService {
    return new LocalRooms(this.#options, this.#shared, requestId);
  }

  load(): RoomsLoad {
    return { forwardedTracks: this.#shared.subscriptions, rooms: this.#entries.size };
  }

  async createRoom(asked: RoomConfig): Promise<{ room: RoomView; address: string }> {
    if (this.draining) unwrap(refusals.draining());
    const roomId = asked.roomId ?? this.#newId();
    if (this.#entries.has(roomId)) unwrap(refusals.roomExists(roomId));

    // Takes the id before anything is awaited: of two at the same moment one wins.
    const entry: Entry = { ref: undefined, machine: undefined, media: undefined, subscriptions: 0 };
    this.#entries.set(roomId, entry);
    try {
      await this.#start(entry, { ...asked, roomId });
    } catch (error) {
      this.#forget(roomId, entry);
      await entry.media?.close().catch(() => {});
      this.#log.error('room.start_failed', { roomId, error });
      throw new RoomError('ROOM_FAILED', unwrapMessage(refusals.roomFailed()), { cause: error });
    }
    if (this.draining) {
      await this.#delete(entry);
      unwrap(refusals.draining());
    }
    this.#log.info('room.created', { roomId });

    return { room: this.#view(roomId), address: this.#options.address };
  }

  async listRooms(): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    return { rooms: this.views(), unreachable: [] };
  }

  views(): RoomView[] {
    const rooms: RoomView[] = [];
    for (const { machine } of this.#entries.values()) if (machine !== undefined) rooms.push(machine.view);

    return rooms;
  }

  roomRef(roomId: string): RoomRef | undefined {
    return this.#entries.get(roomId)?.ref;
  }

  async getRoom(roomId: string): Promise<RoomView> {
    return this.#view(roomId);
  }

  async deleteRoom(roomId: string): Promise<void> {
    await this.#ask(roomId, (room) => this.#sender.call(room, { type: 'remove' }, REQUEST_TIMEOUT_MS));
  }

  async addPeer(roomId: string, options: unknown): ReturnType<RoomService['addPeer']> {
    const peer = await this.#ask(roomId, (room) =>
      this.#sender.call(room, { type: 'addPeer', options }, REQUEST_TIMEOUT_MS),
    );
    const token = issuePeerToken({ roomId, peerId: peer.id }, this.#now(), this.#options);

    return { peer, token, websocketUrl: `${this.#options.address}/socket/peer/websocket` };
  }

  async removePeer(roomId: string, peerId: string): Promise<void> {
    await this.#ask(roomId, (room) => this.#sender.call(room, { type: 'removePeer', peerId }, REQUEST_TIMEOUT_MS));
  }

  addComponent(roomId: string, kind: ComponentType, options: unknown): ReturnType<RoomService['addComponent']> {
    return this.#ask(roomId, (room) =>
      this.#sender.call(room, { type: 'addComponent', kind, options }, REQUEST_TIMEOUT_MS),
    );
  }

  async removeComponent(roomId: string, componentId: string): Promise<void> {
    await this.#ask(roomId, (room) =>
      this.#sender.call(room, { type: 'removeComponent', componentId }, REQUEST_TIMEOUT_MS),
    );
  }

  async subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    await this.#ask(roomId, (room) =>
      this.#sender.call(room, { type: 'subscribeComponent', componentId, origins }, REQUEST_TIMEOUT_MS),
    );
  }

  async dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    await this.#ask(roomId, (room) =>
      this.#sender.call(room, { type: 'dial', componentId, phoneNumber }, REQUEST_TIMEOUT_MS),
    );
  }

  async hangUp(roomId: string, componentId: string): Promise<void> {
    await this.#ask(roomId, (room) => this.#sender.call(room, { type: 'hangUp', componentId }, REQUEST_TIMEOUT_MS));
  }

  async attachPeer(...[token, socket]: Parameters<RoomService['attachPeer']>): ReturnType<RoomService['attachPeer']> {
    const claim = verifyPeerToken(token, this.#now(), this.#options);
    if (typeof claim === 'string') return claim;
    const room = this.#entries.get(claim.roomId)?.ref;
    if (room === undefined) return 'room not found';

    return this.#attach(room, claim.peerId, socket, this.#shared.sockets);
  }

  attachTo(room: RoomRef, peerId: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal> {
    // A room of another node outlives this one: there are no last words of it to wait for.
    return this.#attach(room, peerId, socket);
  }

  get draining(): boolean {
    return this.#shared.draining !== 'no';
  }

  drain(forGood = false): void {
    if (forGood) this.#shared.draining = 'for good';
    else if (!this.draining) this.#shared.draining = 'for now';
  }

  undrain(): void {
    if (this.#shared.draining === 'for now') this.#shared.draining = 'no';
  }

  media(roomId: string): MediaRoom | undefined {
    return this.#entries.get(roomId)?.media;
  }

  componentState(roomId: string, componentId: string): ComponentState | undefined {
    const component = this.#entries.get(roomId)?.machine?.components.get(componentId);
    if (component === undefined) return undefined;
    const { subscribeMode, origins, received = [], running } = component;

    return {
      subscribeMode,
      origins: [...origins],
      receives: received.map(({ origin, track }) => ({ trackId: track.trackId, origin })),
      details: running.inspect?.() ?? null,
    };
  }

  async deleteAll(): Promise<void> {
    await Promise.all([...this.#entries.values()].map((entry) => this.#delete(entry)));
    // The rooms are gone as soon as they said so; their last words to the clients are still to leave.
    const ended = [...this.#shared.sockets].map((ref) => new Promise((resolve) => this.#system.monitor(ref, resolve)));
    await Promise.all(ended);
  }

  async reports(): Promise<RoomReport[]> {
    const reports: Promise<RoomReport>[] = [];
    for (const [roomId, { machine, media }] of this.#entries) {
      const peers = machine?.connectedPeers() ?? [];
      if (media !== undefined && peers.length > 0) reports.push(this.#report(roomId, media, peers));
    }

    return Promise.all(reports);
  }

  #attach(
    room: RoomRef,
    peerId: string,
    socket: PeerSocket,
    sockets?: Set<SocketRef>,
  ): Promise<AttachedPeer | AttachRefusal> {
    const requestId = newRequestId();
    this.#log.debug('peer.attaching', { room: room.path, peerId, requestId });
    const tracked = sockets === undefined ? {} : { sockets };

    return attachSocket({ system: this.#system, room, peerId, socket, requestId, ...tracked });
  }

  /** As `deleteRoom`, and waits until its media is closed as well. */
  async #delete({ ref }: Entry): Promise<void> {
    if (ref === undefined) return;
    await this.#system.call(ref, { type: 'remove' }, REQUEST_TIMEOUT_MS).catch(() => {});
    await this.#system.stop(ref);
  }

  async #report(
    roomId: string,
    media: MediaRoom,
    peers: ReturnType<RoomMachine['connectedPeers']>,
  ): Promise<RoomReport> {
    const reports = peers.map(async ({ peerId, ref, metadata, tracks }) => ({
      peerId,
      metadata,
      tracks: tracks.map((track) => ({ trackId: track.trackId, metadata: track.metadata })),
      descriptions: await this.#system.call(ref, { type: 'describe' }, DESCRIBE_TIMEOUT_MS).catch(() => ({})),
    }));

    return { roomId, peers: await Promise.all(reports), media: await media.stats().catch(() => undefined) };
  }

  async #start(entry: Entry, config: RoomConfig & { roomId: string }): Promise<void> {
    const { engine, events, createSession, webrtcEnabled, secretKeyBase } = this.#options;
    const { roomId, webhookUrl } = config;
    const early: MediaRoomEvent[] = [];
    const onEvent = (event: MediaRoomEvent): void => {
      if (entry.ref === undefined) early.push(event);
      else this.#system.cast(entry.ref, { type: 'fromMedia', event });
    };

    const media = await engine.openRoom(roomId, onEvent);
    entry.media = media;
    const behaviour = roomBehaviour({
      config,
      media,
      createSession,
      webrtcEnabled,
      componentKinds: this.#shared.kinds,
      newId: this.#newId,
      relaySecret: `relay ${secretKeyBase}`,
      created: (machine) => {
        entry.machine = machine;
      },
      notify: (notification, requestId) => events(notification, { webhookUrl, requestId }),
      changed: (machine) => this.#setSubscriptions(entry, machine.subscriptions),
      ended: () => this.#forget(roomId, entry),
    });
    entry.ref = await this.#sender.call(this.#shared.owner, { type: 'create', behaviour, roomId });
    for (const event of early) onEvent(event);
  }

  #setSubscriptions(entry: Entry, subscriptions: number): void {
    this.#shared.subscriptions += subscriptions - entry.subscriptions;
    entry.subscriptions = subscriptions;
  }

  #forget(roomId: string, entry: Entry): void {
    this.#setSubscriptions(entry, 0);
    if (this.#entries.get(roomId) === entry) this.#entries.delete(roomId);
  }

  #view(roomId: string): RoomView {
    const view = this.#entries.get(roomId)?.machine?.view;

    return view ?? unwrap(refusals.roomNotFound(roomId));
  }

  async #ask<T>(roomId: string, call: (room: RoomRef) => Promise<Outcome<T>>): Promise<T> {
    const room = this.#entries.get(roomId)?.ref;
    if (room === undefined) return unwrap(refusals.roomNotFound(roomId));

    try {
      return unwrap(await call(room));
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      // It ended while the request was on its way.
      if (error.code === 'NO_PROCESS' || error.code === 'CRASHED') return unwrap(refusals.roomNotFound(roomId));
      throw new RoomError('OWNER_UNREACHABLE', `Room ${roomId} does not answer`, { cause: error });
    }
  }
}

function unwrapMessage(outcome: Outcome<never>): string {
  return outcome.ok ? '' : outcome.message;
}
