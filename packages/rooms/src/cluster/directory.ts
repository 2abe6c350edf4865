/** Which node owns which room, as far as this node was told: a cache that is rebuilt from the owners. */

export interface OwnedRoom {
  roomId: string;
  /** Milliseconds since the epoch, by the owner's clock. */
  createdAt: number;
}

export interface RoomConflict {
  roomId: string;
  /** Keeps the id. */
  kept: string;
  /** Owns a younger room of that id: it stays reachable on that node only. */
  shadowed: string;
}

interface Node {
  rooms: Map<string, number>;
  reachable: boolean;
  lostAt: number;
}

/** Rooms of a lost node are remembered this long: it may be cut off and not dead, and then they still exist. */
const LOST_NODE_MEMORY_MS = 10 * 60_000;

export class Directory {
  readonly #self: string;
  readonly #now: () => number;
  readonly #nodes = new Map<string, Node>();
  readonly #conflicts = new Set<string>();

  constructor(self: string, now: () => number) {
    this.#self = self;
    this.#now = now;
  }

  /** A member, the own node included, owns this room. Returns the conflict that this has brought to light, once. */
  add(node: string, { roomId, createdAt }: OwnedRoom): RoomConflict | undefined {
    this.#node(node).rooms.set(roomId, createdAt);
    // A lost owner may be dead: only two that are both there contradict each other.
    const owners = this.#ownersOf(roomId).filter((owner) => this.#nodes.get(owner)?.reachable);
    if (owners.length < 2) return undefined;
    const [kept, shadowed] = owners as [string, string];
    const key = `${roomId}\0${owners.join('\0')}`;
    if (this.#conflicts.has(key)) return undefined;
    this.#conflicts.add(key);
    return { roomId, kept, shadowed };
  }

  remove(node: string, roomId: string): void {
    this.#nodes.get(node)?.rooms.delete(roomId);
    for (const key of this.#conflicts) if (key.startsWith(`${roomId}\0`)) this.#conflicts.delete(key);
  }

  /** Everything that a member owns, as it said when the link came up; what it does not name is gone. */
  replace(node: string, rooms: readonly OwnedRoom[]): RoomConflict[] {
    this.#nodes.set(node, { rooms: new Map(), reachable: true, lostAt: 0 });
    return rooms.map((room) => this.add(node, room)).filter((conflict) => conflict !== undefined);
  }

  /** The link to a node was lost; its rooms may still exist. */
  lost(node: string): void {
    const known = this.#nodes.get(node);
    if (!known) return;
    known.reachable = false;
    known.lostAt = this.#now();
  }

  /** A node said goodbye: its rooms are over. */
  left(node: string): void {
    this.#nodes.delete(node);
  }

  /**
   * The owner of a room. A reachable one before an unreachable one; of two, the one with the older room, then the lower
   * name. A room of the own node is always that.
   */
  ownerOf(roomId: string): { node: string; reachable: boolean } | undefined {
    this.#forgetTheDead();
    if (this.#nodes.get(this.#self)?.rooms.has(roomId)) return { node: this.#self, reachable: true };
    const [node] = this.#ownersOf(roomId);
    if (node === undefined) return undefined;
    return { node, reachable: this.#nodes.get(node)?.reachable ?? false };
  }

  /** Lost nodes that may still run, with rooms that nobody here has heard of. */
  unreachable(): string[] {
    this.#forgetTheDead();
    return [...this.#nodes].filter(([, node]) => !node.reachable).map(([name]) => name);
  }

  /** Whether this very node is known to own the room. */
  knows(node: string, roomId: string): boolean {
    return this.#nodes.get(node)?.rooms.has(roomId) ?? false;
  }

  get size(): number {
    let size = 0;
    for (const { rooms } of this.#nodes.values()) size += rooms.size;
    return size;
  }

  #ownersOf(roomId: string): string[] {
    const owners: { node: string; createdAt: number; reachable: boolean }[] = [];
    for (const [node, { rooms, reachable }] of this.#nodes) {
      const createdAt = rooms.get(roomId);
      if (createdAt !== undefined) owners.push({ node, createdAt, reachable });
    }
    return owners
      .toSorted(
        (a, b) => Number(b.reachable) - Number(a.reachable) || a.createdAt - b.createdAt || (a.node < b.node ? -1 : 1),
      )
      .map(({ node }) => node);
  }

  #forgetTheDead(): void {
    const before = this.#now() - LOST_NODE_MEMORY_MS;
    for (const [name, node] of this.#nodes) if (!node.reachable && node.lostAt < before) this.#nodes.delete(name);
  }

  #node(name: string): Node {
    let node = this.#nodes.get(name);
    if (!node) {
      node = { rooms: new Map(), reachable: true, lostAt: 0 };
      this.#nodes.set(name, node);
    }
    return node;
  }
}
