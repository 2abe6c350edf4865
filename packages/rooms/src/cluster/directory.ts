import type { Clock } from '@bloom/time';
import type { RoomRef } from '../room/room-messages.js';

export interface OwnedRoom {
  roomId: string;
  /** Unix milliseconds, by the owner's clock. */
  createdAt: number;
  /** Grows with each move and each standby. Absent: the room has never moved. */
  epoch?: number;
  ref: RoomRef;
}

/** Where a room lives. */
export interface RoomPlace {
  node: string;
  ref: RoomRef;
  /** Unix milliseconds by the owner's clock; absent until the room's announcement has arrived. */
  createdAt?: number;
}

/** Where a room lives, as far as this node knows. `lostAt`: when the link to its node was lost, by `clock.now`. */
type KnownPlace = RoomPlace & { reachable: boolean; lostAt: number };

export interface RoomConflict {
  roomId: string;
  /** The node that keeps the id. */
  kept: string;
  /** The node with the younger room of that id; the room stays reachable on that node only. */
  shadowed: string;
}

interface Node {
  rooms: Map<string, OwnedRoom>;
  reachable: boolean;
  lostAt: number;
}

/** How long the rooms of a lost node are remembered: the node may be cut off rather than dead. */
const LOST_NODE_MEMORY_MS = 10 * 60_000;
/** How long after a node has left its rooms may turn out to have moved: announcements of their new owners are late. */
const LEFT_ROOM_MEMORY_MS = 10_000;
/** Maximum number of rooms kept per member; further rooms are found by asking it. */
export const MAX_ROOMS = 200_000;
/** How long it is remembered that a member has announced a room. Its last events may arrive after the room's end. */
const FORMER_MEMORY_MS = 60_000;
/** Maximum number of such memories; the oldest go first. */
const MAX_FORMER = 10_000;
/** No node creates a room with a longer id. */
const MAX_ID_LENGTH = 255;
/** Maximum number of conflicts remembered and reported. */
const MAX_CONFLICTS = 1_000;

/** Records which node owns each room, as announced by the owners. A cache that can always be rebuilt from them. */
export class Directory {
  readonly #self: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #nodes = new Map<string, Node>();
  readonly #conflicts = new Set<string>();
  /** Rooms of this node that it has given to another. */
  readonly #given = new Set<string>();
  /** Ids of rooms whose node has left, with the time until which they are remembered. */
  readonly #left = new Map<string, number>();
  /** Members that no longer announce a room, with the time until which that is remembered; oldest first. */
  readonly #former = new Map<string, number>();

  constructor(self: string, clock: Pick<Clock, 'now'>) {
    this.#self = self;
    this.#clock = clock;
  }

  /** Number of rooms that all nodes have announced. */
  get size(): number {
    let rooms = 0;
    for (const node of this.#nodes.values()) rooms += node.rooms.size;

    return rooms;
  }

  /**
   * Adds a room of a member or of this node. Returns the conflict that this reveals; each conflict is returned once.
   */
  add(node: string, room: OwnedRoom): RoomConflict | undefined {
    const { roomId } = room;
    const { rooms } = this.#node(node);
    if (roomId.length > MAX_ID_LENGTH || (rooms.size >= MAX_ROOMS && !rooms.has(roomId))) return undefined;
    rooms.set(roomId, room);
    if (node === this.#self) this.#given.delete(roomId);
    // A lost owner may be dead: two owners conflict only while both are reachable.
    const owners = this.#ownersOf(roomId).filter(
      (owner) => this.#nodes.get(owner)?.reachable && !this.#isSuperseded(owner, roomId),
    );
    if (owners.length < 2) return undefined;
    const [kept, shadowed] = owners as [string, string];
    const key = `${roomId}\0${owners.join('\0')}`;
    if (this.#conflicts.has(key) || this.#conflicts.size >= MAX_CONFLICTS) return undefined;
    this.#conflicts.add(key);
    return { roomId, kept, shadowed };
  }

  /** Accepts from now on that another node owns this room of this node, once that announces it. */
  given(roomId: string): void {
    this.#given.add(roomId);
  }

  remove(node: string, roomId: string): void {
    if (this.#nodes.get(node)?.rooms.delete(roomId) === true) this.#remember(node, [roomId]);
    if (node === this.#self) this.#given.delete(roomId);
    this.unconfirmed(roomId);
  }

  /** Forgets the conflicts about an id: the next announcement that reveals one returns it again. */
  unconfirmed(roomId: string): void {
    for (const key of this.#conflicts) if (key.startsWith(`${roomId}\0`)) this.#conflicts.delete(key);
  }

  /**
   * Replaces a member's rooms with the snapshot sent when its link came up. Returns the conflicts that this reveals.
   */
  replace(node: string, rooms: readonly OwnedRoom[]): RoomConflict[] {
    const kept = new Set(rooms.map(({ roomId }) => roomId));
    this.#forgetConflicts(node, kept);
    const former = this.#nodes.get(node)?.rooms.keys() ?? [];
    this.#remember(
      node,
      [...former].filter((roomId) => !kept.has(roomId)),
    );
    this.#nodes.set(node, { rooms: new Map(), reachable: true, lostAt: 0 });
    return rooms.map((room) => this.add(node, room)).filter((conflict) => conflict !== undefined);
  }

  /** Marks a node's link as lost. Its rooms may still exist. */
  lost(node: string): void {
    const known = this.#nodes.get(node);
    if (known === undefined) return;
    known.reachable = false;
    known.lostAt = this.#clock.now();
  }

  /** Forgets a node that has left: its rooms have ended, or have just moved elsewhere. */
  left(node: string): void {
    this.#forgetConflicts(node, new Set());
    const now = this.#clock.now();
    for (const [roomId, until] of this.#left) if (until <= now) this.#left.delete(roomId);
    const rooms = [...(this.#nodes.get(node)?.rooms.keys() ?? [])];
    for (const roomId of rooms) this.#left.set(roomId, now + LEFT_ROOM_MEMORY_MS);
    this.#remember(node, rooms);
    this.#nodes.delete(node);
  }

  /**
   * Returns where a room lives. Prefers a reachable owner, then the owner after most moves, then the owner of the older
   * room, then the lower name; this node prefers its own room until it has given it to a reachable owner. `except` is a
   * node that does not have it.
   */
  find(roomId: string, except?: string): KnownPlace | undefined {
    this.#forgetExpired();
    const own = this.#self === except ? undefined : this.#nodes.get(this.#self)?.rooms.get(roomId);
    if (own !== undefined && !this.#isSuperseded(this.#self, roomId))
      return { node: this.#self, ref: own.ref, createdAt: own.createdAt, reachable: true, lostAt: 0 };

    const owner = this.#ownersOf(roomId).find((node) => node !== except);
    const known = owner === undefined ? undefined : this.#nodes.get(owner);
    const room = known?.rooms.get(roomId);
    if (owner === undefined || known === undefined || room === undefined) return undefined;
    const { reachable, lostAt } = known;
    return { node: owner, ref: room.ref, createdAt: room.createdAt, reachable, lostAt };
  }

  /** True if the room's last known node is gone, so that it may run where it has not been announced from yet. */
  mayHaveMoved(roomId: string): boolean {
    return this.find(roomId)?.reachable === false || (this.#left.get(roomId) ?? 0) > this.#clock.now();
  }

  /** Returns the lost nodes that may still be running. */
  unreachable(): string[] {
    this.#forgetExpired();
    return [...this.#nodes].filter(([, node]) => !node.reachable).map(([name]) => name);
  }

  /** Returns whether that node has announced the room. */
  knows(node: string, roomId: string): boolean {
    return this.announced(node, roomId) !== undefined;
  }

  /** Returns whether that node announces the room, or did within the last minute. */
  knewLately(node: string, roomId: string): boolean {
    return this.knows(node, roomId) || (this.#former.get(formerKey(node, roomId)) ?? 0) > this.#clock.now();
  }

  /** Records that a member had a room which it has never announced here. */
  had(node: string, roomId: string): void {
    this.#remember(node, [roomId]);
  }

  /** Returns what that node has announced of a room. */
  announced(node: string, roomId: string): OwnedRoom | undefined {
    return this.#nodes.get(node)?.rooms.get(roomId);
  }

  /**
   * Returns whether a standby must not take the room over, as far as this node knows: its owner no longer announces it,
   * or under an epoch that is not below the standby's, or another node announces it under such an epoch. `isFormer`:
   * the owner is a former process of the name, of whose rooms the present one knows nothing.
   */
  deniesTakeover(
    { owner, standby, isFormer }: { owner: string; standby: string; isFormer: boolean },
    room: Omit<OwnedRoom, 'ref'>,
  ): boolean {
    const { roomId, createdAt, epoch = 0 } = room;
    const known = isFormer ? undefined : this.#nodes.get(owner);
    if (known !== undefined && known.rooms.get(roomId)?.createdAt !== createdAt) return true;
    for (const [node, { rooms }] of this.#nodes) {
      const other = rooms.get(roomId);
      if (node !== standby && other?.createdAt === createdAt && (other.epoch ?? 0) >= epoch) return true;
    }

    return false;
  }

  /**
   * Returns the nodes from which the room has been taken over, as far as they announce it still: a room that moves in
   * order gets the epoch after that of its giver, and a standby a later one.
   */
  takenFrom({ roomId, createdAt, epoch = 0 }: OwnedRoom, node: string): string[] {
    const isEarlier = (room: OwnedRoom | undefined): boolean =>
      room?.createdAt === createdAt && epoch > (room.epoch ?? 0) + 1;

    return [...this.#nodes]
      .filter(([name, { rooms }]) => name !== node && isEarlier(rooms.get(roomId)))
      .map(([n]) => n);
  }

  #ownersOf(roomId: string): string[] {
    const owners: { node: string; createdAt: number; epoch: number; reachable: boolean }[] = [];
    for (const [node, { rooms, reachable }] of this.#nodes) {
      const room = rooms.get(roomId);
      if (room !== undefined) owners.push({ node, createdAt: room.createdAt, epoch: room.epoch ?? 0, reachable });
    }
    return owners
      .toSorted(
        (a, b) =>
          Number(b.reachable) - Number(a.reachable) ||
          b.epoch - a.epoch ||
          a.createdAt - b.createdAt ||
          (a.node < b.node ? -1 : 1),
      )
      .map(({ node }) => node);
  }

  /**
   * True if the node's room has moved on to a reachable node. The old owner relays for a while and withdraws its
   * announcement later, so that nobody takes the id before the new owner's announcement has arrived everywhere. Nobody
   * can take a room of this node by announcing it.
   */
  #isSuperseded(node: string, roomId: string): boolean {
    if (node === this.#self && !this.#given.has(roomId)) return false;
    const room = this.#nodes.get(node)?.rooms.get(roomId);
    if (room === undefined) return false;
    for (const { rooms, reachable } of this.#nodes.values()) {
      const other = rooms.get(roomId);
      const isLater = (other?.epoch ?? 0) > (room.epoch ?? 0);
      if (reachable && other?.createdAt === room.createdAt && isLater) return true;
    }
    return false;
  }

  #remember(node: string, roomIds: Iterable<string>): void {
    const now = this.#clock.now();
    for (const roomId of roomIds) {
      const key = formerKey(node, roomId);
      this.#former.delete(key);
      this.#former.set(key, now + FORMER_MEMORY_MS);
    }
    for (const [key, until] of this.#former) {
      if (until > now && this.#former.size <= MAX_FORMER) break;
      this.#former.delete(key);
    }
  }

  /** Forgets conflicts about rooms that the node no longer has, because the same rooms may conflict again. */
  #forgetConflicts(node: string, kept: ReadonlySet<string>): void {
    for (const key of this.#conflicts) {
      const [roomId = '', ...owners] = key.split('\0');
      if (owners.includes(node) && !kept.has(roomId)) this.#conflicts.delete(key);
    }
  }

  #forgetExpired(): void {
    const before = this.#clock.now() - LOST_NODE_MEMORY_MS;
    for (const [name, node] of this.#nodes) if (!node.reachable && node.lostAt < before) this.left(name);
  }

  #node(name: string): Node {
    let node = this.#nodes.get(name);
    if (node === undefined) {
      node = { rooms: new Map(), reachable: true, lostAt: 0 };
      this.#nodes.set(name, node);
    }
    return node;
  }
}

function formerKey(node: string, roomId: string): string {
  return `${node}\0${roomId}`;
}
