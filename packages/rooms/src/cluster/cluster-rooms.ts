import { randomUUID } from 'node:crypto';
import type { ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import { refusals, unwrap } from '../outcome.js';
import { verifyPeerToken, type TokenKey } from '../peer-token.js';
import type { RoomRef } from '../room-messages.js';
import {
  requested,
  RoomError,
  type AttachedPeer,
  type AttachRefusal,
  type ComponentType,
  type PeerSocket,
  type RoomConfig,
  type RoomService,
  type RoomView,
} from '../room-service.js';
import { Claims } from './claims.js';
import { portFor, type ClusterPort } from './cluster-port.js';
import { Directory, type OwnedRoom, type RoomConflict } from './directory.js';
import { NODE_ACTOR, nodeBehaviour, serve, type OwnRooms } from './node-actor.js';
import type { ServiceCall } from './node-messages.js';
import { Placement, type PlacementDecision } from './placement.js';
import { homesOf } from './rendezvous.js';
import { sendableOptions } from './sendable-options.js';

/** A forwarded request; clients give up after 5 s. */
const FORWARD_TIMEOUT_MS = 4000;
const LIST_TIMEOUT_MS = 2000;
/** How long a home has to decide about an id before the next one is asked. */
const CLAIM_TIMEOUT_MS = 500;
const LOOKUP_TIMEOUT_MS = 1000;

export interface ClusterRoomsOptions {
  system: ActorSystem;
  port: ClusterPort;
  /** The rooms of this node. */
  rooms: OwnRooms & {
    /** As `attachPeer`, for a room of another node. */
    attachTo(room: RoomRef, peerId: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal>;
  };
  tokenKey: TokenKey;
  log: Log;
  now: () => number;
  onPlaced?: (node: string) => void;
  onReservationRefused?: (node: string) => void;
  onConflict?: (conflict: RoomConflict) => void;
}

/** The rooms of the whole cluster: any node answers for any room, and each new room goes to the least-loaded node. */
export class ClusterRooms implements RoomService {
  readonly #options: ClusterRoomsOptions;
  readonly #directory: Directory;
  readonly #claims: Claims;
  readonly #placement: Placement;
  readonly #owned: Map<string, OwnedRoom>;
  readonly #port: ClusterPort;
  readonly #log: Log;
  readonly #requestId: string | undefined;

  /** With `origin`: the same rooms, asked in the name of that request. */
  constructor(options: ClusterRoomsOptions, origin?: ClusterRooms, requestId?: string) {
    this.#options = options;
    this.#requestId = requestId;
    const { port, now, log, rooms, system } = options;
    this.#port = portFor(port, requestId);
    this.#log = requestId === undefined ? log : log.child({ requestId });
    if (origin !== undefined) {
      this.#directory = origin.#directory;
      this.#claims = origin.#claims;
      this.#placement = origin.#placement;
      this.#owned = origin.#owned;
      return;
    }
    this.#owned = new Map();
    this.#directory = new Directory(port.self, now);
    this.#claims = new Claims(now);
    this.#placement = new Placement({
      port,
      log,
      now,
      ...(options.onPlaced ? { onPlaced: options.onPlaced } : {}),
      ...(options.onReservationRefused ? { onConflict: options.onReservationRefused } : {}),
    });
    const actor = system.spawn(
      nodeBehaviour({
        rooms,
        now,
        claim: (roomId, claimant) => this.#decide(roomId, claimant),
        unclaim: (roomId, claimant, owner) => {
          if (owner === undefined || this.#directory.knows(owner, roomId)) this.#claims.release(roomId, claimant);
          else this.#claims.settle(roomId, claimant, owner);
        },
        onSnapshot: (node, owned) => {
          if (this.#isMember(node)) this.#report(this.#directory.replace(node, owned));
        },
        onAnnounce: (node, { created, removed }) => {
          if (!this.#isMember(node)) return;
          if (removed !== undefined) this.#directory.remove(node, removed);
          if (created !== undefined) this.#report([this.#directory.add(node, created)]);
        },
      }),
      { name: NODE_ACTOR, mailbox: { essential: 'all' }, supervise: 'restart' },
    );
    system.register(NODE_ACTOR, actor);
  }

  forRequest(requestId: string): RoomService {
    return new ClusterRooms(this.#options, this, requestId);
  }

  /** The last placements of this node with the figures they were based on. */
  get decisions(): readonly PlacementDecision[] {
    return this.#placement.decisions;
  }

  get placement(): Placement {
    return this.#placement;
  }

  get directory(): Directory {
    return this.#directory;
  }

  /** To be called with every notification of the own rooms, before anybody is answered. */
  observe(notification: Notification, requestId?: string): void {
    const { now } = this.#options;
    const port = portFor(this.#port, requestId);
    const { roomId } = notification;
    if (notification.type === 'roomCreated') {
      const created = { roomId, createdAt: now() };
      this.#owned.set(roomId, created);
      this.#report([this.#directory.add(port.self, created)]);
      for (const node of port.members()) port.cast(node, { type: 'announce', node: port.self, created });
    } else if (notification.type === 'roomDeleted' || notification.type === 'roomCrashed') {
      this.#owned.delete(roomId);
      this.#directory.remove(port.self, roomId);
      for (const node of port.members()) port.cast(node, { type: 'announce', node: port.self, removed: roomId });
    }
  }

  /** A member has a link: it learns what we own, and tells us the same. */
  memberUp(node: string): void {
    const { port } = this.#options;
    port.cast(node, { type: 'snapshot', node: port.self, rooms: [...this.#owned.values()] });
  }

  memberDown(node: string, orderly: boolean): void {
    if (orderly) this.#directory.left(node);
    else this.#directory.lost(node);
  }

  async createRoom(config: RoomConfig): Promise<{ room: RoomView; address: string }> {
    const { roomId } = config;
    // A generated id is new by itself.
    if (roomId === null) return strip(await this.#placement.create(config, this.#requestId));

    const claimant = randomUUID();
    const askedAt = this.#options.now();
    const homes = await this.#claim(roomId, claimant);
    let owner: string | undefined;
    try {
      const placed = await this.#placement.create(config, this.#requestId, askedAt);
      owner = placed.node;
      return strip(placed);
    } finally {
      this.#unclaim(homes, { roomId, claimant, ...(owner === undefined ? {} : { owner }) });
    }
  }

  async listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    const { rooms } = this.#options;
    const port = this.#port;
    const own = await rooms.listRooms('local');
    if (scope === 'local') return own;
    const unreachable = this.#directory.unreachable();
    const others = await Promise.all(
      port.members().map((node) =>
        port.call(node, { type: 'listRooms' }, LIST_TIMEOUT_MS).catch((): RoomView[] => {
          unreachable.push(node);
          return [];
        }),
      ),
    );
    return { rooms: [...own.rooms, ...others.flat()], unreachable: [...new Set(unreachable)].toSorted() };
  }

  getRoom(roomId: string): Promise<RoomView> {
    return this.#forward({ method: 'getRoom', roomId });
  }

  async deleteRoom(roomId: string): Promise<void> {
    await this.#forward({ method: 'deleteRoom', roomId });
  }

  addPeer(roomId: string, options: unknown): ReturnType<RoomService['addPeer']> {
    return this.#forward({ method: 'addPeer', roomId, options: sendableOptions(options) });
  }

  async removePeer(roomId: string, peerId: string): Promise<void> {
    await this.#forward({ method: 'removePeer', roomId, peerId });
  }

  addComponent(roomId: string, kind: ComponentType, options: unknown): ReturnType<RoomService['addComponent']> {
    return this.#forward({ method: 'addComponent', roomId, kind, options: sendableOptions(options) });
  }

  async removeComponent(roomId: string, componentId: string): Promise<void> {
    await this.#forward({ method: 'removeComponent', roomId, componentId });
  }

  async subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    await this.#forward({ method: 'subscribeComponent', roomId, componentId, origins });
  }

  async dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    await this.#forward({ method: 'dial', roomId, componentId, phoneNumber });
  }

  async hangUp(roomId: string, componentId: string): Promise<void> {
    await this.#forward({ method: 'hangUp', roomId, componentId });
  }

  async attachPeer(token: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal> {
    const { port, rooms, now, tokenKey } = this.#options;
    const claim = verifyPeerToken(token, now(), tokenKey);
    if (typeof claim === 'string') return claim;
    const owner = await this.ownerOf(claim.roomId).catch(roomIsGone);
    if (owner === 'room not found') return owner;
    if (owner === port.self) return rooms.attachPeer(token, socket);
    const room = await port.call(owner, { type: 'roomRef', roomId: claim.roomId }, FORWARD_TIMEOUT_MS);
    return room === null ? 'room not found' : rooms.attachTo(room, claim.peerId, socket);
  }

  /** Runs a call on the node that owns the room. */
  async #forward<T>(call: ServiceCall): Promise<T> {
    const { rooms, system } = this.#options;
    const port = this.#port;
    const requestId = this.#requestId;
    const owner = await this.ownerOf(call.roomId);
    if (requestId !== undefined) system.note(requestId, 'directory', `owner of ${call.roomId} is ${owner}`);
    if (owner === port.self) return serve(requested(rooms, requestId), call) as Promise<T>;
    const outcome = await port.call(owner, { type: 'serve', call }, FORWARD_TIMEOUT_MS).catch((error: unknown) => {
      this.#log.warn('cluster.forward_failed', { node: owner, roomId: call.roomId, method: call.method, error });
      throw unreachable(call.roomId, owner, error);
    });
    return unwrap(outcome) as T;
  }

  /**
   * The node that owns the room.
   * @throws {RoomError} `ROOM_NOT_FOUND`, or `OWNER_UNREACHABLE` when the owner is known but cut off.
   */
  async ownerOf(roomId: string): Promise<string> {
    const port = this.#port;
    const known = this.#directory.ownerOf(roomId);
    if (known?.reachable) return known.node;
    // The announcement may still be on its way: whoever owns it knows.
    const answers = await Promise.all(
      port.members().map(async (node) => {
        const owns = await port.call(node, { type: 'owns', roomId }, LOOKUP_TIMEOUT_MS).catch(() => false);
        return owns ? node : undefined;
      }),
    );
    const owner = answers.find((node) => node !== undefined);
    if (owner !== undefined) return owner;
    if (known) throw unreachable(roomId, known.node);
    return unwrap(refusals.roomNotFound(roomId));
  }

  /** Asks the homes of the id in their order; the first that answers decides. Returns those that hold the claim. */
  async #claim(roomId: string, claimant: string): Promise<string[]> {
    const port = this.#port;
    // The home may have no link to a node that has such a room, or may not have been told yet.
    const known = this.#directory.ownerOf(roomId);
    if (known?.reachable && (await this.#has(known.node, roomId))) return unwrap(refusals.roomExists(roomId));

    const asked: string[] = [];
    for (const home of homesOf(roomId, [port.self, ...port.members()])) {
      asked.push(home);
      const answer = await port
        .call(home, { type: 'claim', roomId, claimant }, CLAIM_TIMEOUT_MS)
        .catch(() => undefined);
      if (answer?.granted) return asked;
      if (!answer) continue;
      this.#unclaim(asked, { roomId, claimant });
      return unwrap(refusals.roomExists(roomId));
    }
    this.#unclaim(asked, { roomId, claimant });
    throw new RoomError('NO_NODE', `No instance could decide about the room id ${roomId} in time`);
  }

  #unclaim(homes: readonly string[], claim: { roomId: string; claimant: string; owner?: string }): void {
    for (const home of homes) this.#port.cast(home, { type: 'unclaim', ...claim });
  }

  /** News of a node that is gone meanwhile would make its rooms look reachable. */
  #isMember(node: string): boolean {
    return this.#options.port.members().includes(node);
  }

  /** As home of an id. */
  async #decide(roomId: string, claimant: string): Promise<boolean> {
    const before = this.#claims.holder(roomId);
    if (before?.owner !== undefined && !(await this.#owns(before.owner, roomId))) {
      // That room came and went before anybody here was told.
      this.#claims.release(roomId, before.claimant);
    }
    if (!this.#claims.claim(roomId, claimant)) return false;
    const owner = this.#directory.ownerOf(roomId);
    if (!owner?.reachable) return true;
    // The room may have ended a moment ago: its owner is asked before its id is refused.
    const exists = await this.#has(owner.node, roomId);
    if (exists) this.#claims.release(roomId, claimant);
    return !exists;
  }

  /** Whether that node, which may be this one, has the room at this moment. */
  async #has(node: string, roomId: string): Promise<boolean> {
    const { port, rooms } = this.#options;
    return node === port.self ? rooms.roomRef(roomId) !== undefined : this.#owns(node, roomId);
  }

  /** True as well when it does not say: better a room too few than two of one id. */
  #owns(node: string, roomId: string): Promise<boolean> {
    return this.#options.port.call(node, { type: 'owns', roomId }, LOOKUP_TIMEOUT_MS).catch(() => true);
  }

  #report(conflicts: readonly (RoomConflict | undefined)[]): void {
    for (const conflict of conflicts) {
      if (!conflict) continue;
      this.#options.log.warn('cluster.room_on_two_nodes', {
        ...conflict,
        hint: `the room on ${conflict.shadowed} is reachable there only; delete one of them`,
      });
      this.#options.onConflict?.(conflict);
    }
  }
}

function strip({ room, address }: { room: RoomView; address: string }): { room: RoomView; address: string } {
  return { room, address };
}

/** Clients take `room not found` for final, so it is said only of rooms that are; anything else is worth another try. */
function roomIsGone(error: unknown): 'room not found' {
  if (error instanceof RoomError && error.code === 'ROOM_NOT_FOUND') return 'room not found';
  throw error;
}

function unreachable(roomId: string, node: string, cause?: unknown): RoomError {
  return new RoomError(
    'OWNER_UNREACHABLE',
    `Room ${roomId} lives on ${node}, which cannot be reached now`,
    cause === undefined ? undefined : { cause },
  );
}
