import { randomUUID } from 'node:crypto';
import type { ActorRef, ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { MediaRoom, MediaRoomEvent } from '@bloom/sfu';
import { inTime, spread, systemClock, type Clock } from '@bloom/time';
import { decodeBacklog } from './room/room-webhooks.js';
import { DrainOrder } from './drain-order.js';
import { Fence } from './fence.js';
import { MediaReach, type Reach } from './media-reach.js';
import type { HeldRoom, RoomHostOptions } from './room-host-options.js';
import { refusals, unwrap } from './outcome.js';
import { issuePeerToken } from './peer/credentials.js';
import { AttachedSockets } from './peer/attached-sockets.js';
import { NODE_STOPPED } from './peer/close-reason.js';
import { RelayedSockets } from './peer/relayed-sockets.js';
import { RequestSessions } from './room/request-sessions.js';
import { prepareComponents, type ResumedComponent } from './room/component-calls.js';
import type { ComponentKinds } from './room/component-kind.js';
import { roomBehaviour } from './room/room-actor.js';
import type { RoomMachine } from './room/room-machine.js';
import type { Guests } from './room/guests.js';
import { owner, type OwnerProtocol } from './room/room-owner.js';
import type { Carry, RoomRef } from './room/room-messages.js';
import type { RoomSnapshot } from './room/room-snapshot.js';
import type { ComponentState, RoomReport, RoomsLoad } from './room-reports.js';
import { RoomError, type CreatedRoom, type NamedConfig, type RoomConfig, type RoomView } from './room-service.js';

/** How long a room has to end on its own before its actor is stopped. */
const DELETE_TIMEOUT_MS = 4_000;
/** A move decides within 1 s whether the room stays; the rest is for a busy node. */
const MOVE_TIMEOUT_MS = 5_000;
/** How long a peer has to describe itself before it is reported without descriptions. */
const DESCRIBE_TIMEOUT_MS = 500;
/** How long a node that ends waits for the givers of the rooms that it holds. */
const DECIDED_MS = 1_500;

/** Why this node accepts no rooms: clients cannot reach it yet, an operator ordered it, or it is closing. */
type DrainReason = 'starting' | 'ordered' | 'closing';

interface Entry {
  /** Whether the caller still waits for the room; checked until the room starts. */
  isWanted: () => boolean;
  ref: RoomRef | undefined;
  machine: RoomMachine | undefined;
  guests?: Guests;
  /** Unix milliseconds; undefined until the room starts. */
  createdAt: number | undefined;
  media: MediaRoom | undefined;
  /** Settles once a room of another node runs here or has failed. */
  opening?: Promise<void>;
  /** Resolves once the giver of a held room has decided. */
  decided?: Promise<void>;
  decide?: () => void;
  /** Events of the media plane before the room's actor runs. */
  early: MediaRoomEvent[];
  subscriptions: number;
}

interface StartOptions {
  config: NamedConfig;
  /** State of the room on its former node, and its components. */
  snapshot?: RoomSnapshot;
  components?: readonly ResumedComponent[];
  requestId: string | undefined;
}

/** Runs the rooms that live on this node. */
export class RoomHost {
  readonly address: string;
  /** Actors of the websockets and sessions attached to rooms of this node. */
  readonly sockets = new AttachedSockets();
  readonly relayed = new RelayedSockets();
  readonly fence: Fence;
  readonly drainOrder: DrainOrder;
  readonly #options: RoomHostOptions;
  readonly #system: ActorSystem;
  readonly #log: Log;
  readonly #owner: ActorRef<OwnerProtocol>;
  readonly #kinds: ComponentKinds;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #sessions: RequestSessions;
  readonly #entries = new Map<string, Entry>();
  /** Actors of rooms that have moved away, which pass messages on. */
  readonly #relays = new Map<string, RoomRef>();
  /** Those of them whose people still have their media here. */
  readonly #leaving = new Set<RoomRef>();
  readonly #reach = new MediaReach();
  #subscriptions = 0;
  readonly #drainedFor = new Set<DrainReason>();
  #isEnding = false;
  #endsSoon = false;

  constructor(options: RoomHostOptions) {
    const { system, log, address, componentKinds = [] } = options;
    this.address = address;
    this.#options = options;
    this.#system = system;
    this.#log = log;
    this.fence = new Fence(log);
    this.#kinds = new Map(componentKinds.map((kind) => [kind.type, kind]));
    this.#clock = options.clock ?? systemClock;
    this.drainOrder = new DrainOrder({
      rooms: {
        drain: () => this.drain('ordered'),
        undrain: () => this.undrain('ordered'),
        isDraining: () => this.draining,
        count: () => this.load().rooms,
      },
      log,
      clock: this.#clock,
    });
    this.#newId = options.newId ?? (() => randomUUID());
    this.#sessions = new RequestSessions({ system, clock: this.#clock, sockets: this.sockets });
    this.#owner = system.spawn(owner, { name: 'rooms', permanent: true });
  }

  /** Number of rooms that have moved away and whose people still have their media here, for 8 s at most. */
  get leaving(): number {
    return this.#leaving.size;
  }

  load(): RoomsLoad {
    return { forwardedTracks: this.#subscriptions, rooms: this.#entries.size };
  }

  /** Calls `isWanted` once the media plane is ready, before `roomCreated` is published. */
  async createRoom(config: RoomConfig, requestId?: string, isWanted = (): boolean => true): Promise<CreatedRoom> {
    if (this.draining) unwrap(refusals.draining());
    const roomId = config.roomId ?? this.#newId();
    const present = this.#entries.get(roomId);
    if (present !== undefined) {
      if (present.ref !== undefined || present.isWanted()) unwrap(refusals.roomExists(roomId));
      throw new RoomError('NO_NODE', `An earlier creation of room ${roomId} was abandoned and has not ended`);
    }

    const log = requestId === undefined ? this.#log : this.#log.child({ requestId });
    // Reserve the id before the first await so that only one of two simultaneous creations succeeds.
    const entry = this.#reserve(roomId, isWanted);
    try {
      const media = await this.#openMedia(entry, roomId);
      if (!entry.isWanted()) throw new RoomError('NO_NODE', 'The creation was withdrawn');
      await this.#start(entry, media, { config: { ...config, roomId }, requestId });
    } catch (error) {
      await this.#abandon(roomId, entry);
      if (error instanceof RoomError) throw error;
      log.error('room.start_failed', { roomId, error });
      throw new RoomError('ROOM_FAILED', refusals.roomFailed().message, { cause: error });
    }
    if (this.draining) {
      await this.#delete(entry);
      unwrap(refusals.draining());
    }
    log.info('room.created', { roomId });

    return { room: this.view(roomId) ?? unwrap(refusals.roomNotFound(roomId)), address: this.address };
  }

  /** Returns why a room cannot move to another node now; undefined if it can. */
  whyStays(roomId: string): string | undefined {
    const snapshot = this.#entries.get(roomId)?.machine?.snapshot();

    return typeof snapshot === 'string' ? snapshot : undefined;
  }

  /** Returns what another node needs to continue a room, or why none can without this one; undefined = no such room. */
  snapshot(roomId: string): RoomSnapshot | string | undefined {
    const { machine, guests } = this.#entries.get(roomId) ?? {};
    const snapshot = machine?.ended === false ? machine.snapshot() : undefined;
    if (snapshot === undefined || typeof snapshot === 'string') return snapshot;
    // They start over after a close code that only a living node sends, so their people would be removed.
    if (machine?.hasLivekit === true) return 'its LiveKit clients need their node';

    return { ...snapshot, invitations: guests?.counted ?? [] };
  }

  /**
   * Gives a room to another node. Returns why it stays, or null once it runs there.
   */
  async giveRoom(roomId: string, carry: Carry): Promise<string | null> {
    const ref = this.#entries.get(roomId)?.ref;
    if (ref === undefined) return 'it has ended';

    return this.#system.call(ref, { type: 'move', carry }, MOVE_TIMEOUT_MS);
  }

  /**
   * Reserves the id of a room of `node` and opens its media. Nothing is seen of the room until it is opened. What is
   * passed on for a room of that id ends.
   */
  async holdRoom(room: Pick<RoomSnapshot, 'config' | 'components'>, node: string): Promise<HeldRoom> {
    const { roomId, videoCodec } = room.config;
    if (this.#entries.has(roomId)) unwrap(refusals.roomExists(roomId));
    const entry = this.#reserve(roomId, () => true);
    entry.decided = new Promise((done) => (entry.decide = done));
    let media: MediaRoom;
    let components: ResumedComponent[];
    try {
      components = await prepareComponents(room.components ?? [], { roomId, videoCodec, kinds: this.#kinds, node });
      media = await this.#openMedia(entry, roomId);
    } catch (error) {
      await this.#abandon(roomId, entry);
      throw error;
    }

    return {
      open: async (snapshot, createdAt) => {
        entry.decide?.();
        delete entry.decided;
        // Its former node hears of that, and reports the end of the room.
        if (this.#isEnding) unwrap(refusals.draining());
        entry.createdAt = createdAt;
        const start = { config: snapshot.config, snapshot, components, requestId: undefined };
        entry.opening = this.#start(entry, media, start);
        await entry.opening;
        return entry.ref ?? unwrap(refusals.roomFailed());
      },
      drop: () => this.#abandon(roomId, entry),
    };
  }

  /** Tells the people of a room where it goes on if this node is lost; those who come are told nothing without it. */
  nameStandby(roomId: string, address: string | undefined): void {
    const ref = this.#entries.get(roomId)?.ref;
    const url = address === undefined ? null : websocketUrl(address);
    if (ref !== undefined) this.#system.cast(ref, { type: 'standby', url });
  }

  /** Returns the actor that passes messages on to a room that has moved away. */
  relayRef(roomId: string): RoomRef | undefined {
    return this.#relays.get(roomId);
  }

  /** Ids of the rooms that run here. */
  roomIds(): string[] {
    return [...this.#entries].filter(([, { ref }]) => ref !== undefined).map(([roomId]) => roomId);
  }

  /** Ends the room, if it exists, and waits until its media has closed. */
  async deleteRoom(roomId: string): Promise<void> {
    const entry = this.#entries.get(roomId);
    if (entry !== undefined) await this.#delete(entry);
  }

  views(): RoomView[] {
    const rooms: RoomView[] = [];
    for (const { machine } of this.#entries.values()) if (machine !== undefined) rooms.push(machine.view);

    return rooms;
  }

  view(roomId: string): RoomView | undefined {
    return this.#entries.get(roomId)?.machine?.view;
  }

  /** Returns when a room was created, in Unix milliseconds; undefined if it does not exist. */
  createdAt(roomId: string): number | undefined {
    return this.#entries.get(roomId)?.createdAt;
  }

  /** Returns the ids of the peers whose metadata the backend has set. */
  describedPeers(roomId: string): string[] {
    return this.#entries.get(roomId)?.machine?.moderation.describedPeers() ?? [];
  }

  roomRef(roomId: string): RoomRef | undefined {
    return this.#entries.get(roomId)?.ref;
  }

  /** Returns how many of the latest people reached the media ports of this node. */
  get mediaReach(): Reach {
    return this.#reach.summary;
  }

  get draining(): boolean {
    return this.#drainedFor.size > 0;
  }

  /** Refuses new rooms until no reason is left. Running rooms continue. */
  drain(reason: DrainReason): void {
    this.#drainedFor.add(reason);
    if (reason === 'closing') this.drainOrder.close();
  }

  /** Removes one reason. */
  undrain(reason: Exclude<DrainReason, 'closing'>): void {
    this.#drainedFor.delete(reason);
  }

  media(roomId: string): MediaRoom | undefined {
    return this.#entries.get(roomId)?.media;
  }

  /** Returns what the latest client of a peer is; undefined before its first join. */
  clientOf(roomId: string, peerId: string): string | undefined {
    return this.#entries.get(roomId)?.machine?.clientOf(peerId);
  }

  /** Returns what a component reports about itself in addition to its view. */
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

  /** Refuses guests: all rooms end within seconds. */
  endSoon(): void {
    this.#endsSoon = true;
  }

  /** Tells LiveKit's clients whose websockets other nodes hold, one after the other, that their rooms end. */
  async tellElsewhere(): Promise<void> {
    const sockets = [...this.#entries.values()].flatMap(({ machine }) => machine?.livekitElsewhere() ?? []);
    const close = { type: 'close', code: 1001, reason: NODE_STOPPED } as const;
    await spread(sockets, (socket) => this.#system.cast(socket, close), this.#clock);
  }

  /**
   * Ends every room as `deleteRoom` does, sends the people of rooms elsewhere to other nodes, and waits until the
   * sockets of its peers have closed. A held room has 1.5 s to arrive and ends too; it is refused afterwards.
   */
  async deleteAll(): Promise<void> {
    this.endSoon();
    this.relayed.closeAll();
    for (const room of this.#leaving) this.#system.cast(room, { type: 'farewellOver' });
    const entries = [...this.#entries.values()];
    const held = entries.filter(({ decided }) => decided !== undefined);
    const end = async (entry: Entry): Promise<void> => {
      await entry.opening?.catch(() => {});
      await this.#delete(entry, 'node_closing');
    };
    const running = entries.filter((entry) => !held.includes(entry)).map(end);
    const all = Promise.all(held.map(({ decided }) => decided));
    if (held.length > 0) await inTime(all, { timeoutMs: DECIDED_MS, late: () => undefined, clock: this.#clock });
    this.#isEnding = true;
    await Promise.all([...running, ...held.map(end)]);
    await this.sockets.ended();
  }

  async reports(): Promise<RoomReport[]> {
    const reports: Promise<RoomReport>[] = [];
    for (const [roomId, { machine, media }] of this.#entries) {
      const peers = machine?.connectedPeers() ?? [];
      if (media !== undefined && peers.length > 0) reports.push(this.#report(roomId, media, peers));
    }

    return Promise.all(reports);
  }

  async #delete({ ref }: Entry, why?: 'node_closing'): Promise<void> {
    if (ref === undefined) return;
    await this.#system
      .call(ref, { type: 'deleteRoom', ...(why === undefined ? {} : { why }) }, DELETE_TIMEOUT_MS)
      .catch(() => {});
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

  #reserve(roomId: string, isWanted: () => boolean): Entry {
    const unknown = { ref: undefined, machine: undefined, createdAt: undefined, media: undefined, early: [] };
    const entry: Entry = { isWanted, ...unknown, subscriptions: 0 };
    this.#entries.set(roomId, entry);

    return entry;
  }

  async #abandon(roomId: string, entry: Entry): Promise<void> {
    this.#forget(roomId, entry);
    if (entry.ref !== undefined) await this.#system.stop(entry.ref);
    await entry.media?.close().catch(() => {});
  }

  async #openMedia(entry: Entry, roomId: string): Promise<MediaRoom> {
    // The room of this id that has moved away has ended.
    const relay = this.#relays.get(roomId);
    if (relay !== undefined) {
      await this.#system.call(relay, { type: 'relayOver' }, DELETE_TIMEOUT_MS).catch(() => {});
      await this.#system.stop(relay);
    }
    entry.media = await this.#options.engine.openRoom(roomId, (event) => {
      if (entry.ref === undefined) entry.early.push(event);
      else this.#system.cast(entry.ref, { type: isData(event) ? 'fromData' : 'fromMedia', event });
    });

    return entry.media;
  }

  async #start(
    entry: Entry,
    media: MediaRoom,
    { config, snapshot, components = [], requestId }: StartOptions,
  ): Promise<void> {
    const { events, moved, createSession, webrtcEnabled, secretKeyBase } = this.#options;
    const { roomId, webhookUrl } = config;
    const behaviour = roomBehaviour({
      config,
      media,
      createSession,
      webrtcEnabled,
      componentKinds: this.#kinds,
      newId: this.#newId,
      relaySecret: `relay ${secretKeyBase}`,
      admit: (peerId, ttl) => ({
        token: issuePeerToken({ roomId, peerId, ttl }, this.#clock.wall(), { secretKeyBase }),
        websocketUrl: websocketUrl(this.address),
      }),
      createdAt: () => entry.createdAt,
      isEnding: () => this.#endsSoon,
      clock: this.#clock,
      sessions: this.#sessions,
      snapshot,
      components,
      isFenced: () => this.fence.isFenced(roomId),
      created: (machine, ref, guests) => {
        Object.assign(entry, { machine, ref, guests });
        entry.createdAt ??= this.#clock.wall();
        for (const event of entry.early.splice(0)) this.#system.cast(ref, { type: 'fromMedia', event });
      },
      resumed: () => {
        const { peers = [], webhooks } = snapshot ?? {};
        const backlog = webhooks === undefined ? undefined : decodeBacklog(webhooks);
        moved?.('here', { roomId, webhookUrl, peers: peers.length, backlog });
      },
      measure: (measure) => {
        if (measure.type === 'media') this.#reach.record(measure);
        this.#options.measure?.(measure, roomId);
      },
      notify: (notification, causedBy) =>
        this.fence.pass(notification, () => events(notification, { webhookUrl, requestId: causedBy })),
      changed: (machine) => {
        this.#setSubscriptions(entry, machine.subscriptions);
        this.fence.changed(roomId);
      },
      ended: () => this.#forget(roomId, entry),
      given: (isTaken) => {
        if (isTaken) this.fence.drop(roomId);
        this.#forget(roomId, entry);
        if (entry.ref === undefined) return;
        this.#relays.set(roomId, entry.ref);
        this.#leaving.add(entry.ref);
      },
      left: () => {
        if (entry.ref !== undefined) this.#leaving.delete(entry.ref);
      },
      relayed: () => {
        if (this.#relays.get(roomId) === entry.ref) this.#relays.delete(roomId);
        moved?.('away', { roomId, webhookUrl, peers: 0 });
      },
    });
    const sender = requestId === undefined ? this.#system : this.#system.forRequest(requestId, 'rooms');
    const isStillWanted = (): boolean => this.#entries.get(roomId) === entry;
    const faults: unknown[] = [];
    const failed = (error: unknown): void => void faults.push(error);
    await sender.call(this.#owner, { type: 'create', behaviour, roomId, isWanted: isStillWanted, failed });
    if (faults.length > 0) throw faults[0];
  }

  #setSubscriptions(entry: Entry, subscriptions: number): void {
    this.#subscriptions += subscriptions - entry.subscriptions;
    entry.subscriptions = subscriptions;
  }

  #forget(roomId: string, entry: Entry): void {
    this.#setSubscriptions(entry, 0);
    entry.decide?.();
    if (this.#entries.get(roomId) === entry) this.#entries.delete(roomId);
  }
}

/** Returns where clients connect to the node with this address, without scheme. */
function websocketUrl(address: string): string {
  return `${address}/socket/peer/websocket`;
}

/** Returns true for messages that a client may send at any rate: they must not displace the room's other messages. */
function isData({ type }: MediaRoomEvent): boolean {
  return type === 'dataMessage' || type === 'dataPacket';
}
