/** Rooms of a history that their standbys take over, and the rules for that. */
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/**
 * How long a standby has to take a room over if nothing else goes wrong: after the end of a process, whose port mapper
 * may be gone, and of a machine.
 */
const TAKEOVER_MS = { process: 6_000, machine: 10_000 };

interface Owner {
  readonly node: VirtualNode;
  readonly epoch: number;
}

export class Takeovers {
  readonly #cluster: VirtualCluster;
  /** Every owner that a room has had, by its key. */
  readonly #owners = new Map<string, Owner[]>();
  /** Number of takeovers of each room id, with the room's key and epoch after the last one. */
  readonly #taken = new Map<string, { count: number; key: string; epoch: number }>();
  /** Living nodes whose port mapper was said not to list them: a proof that is wrong (docs/reference/moving.md). */
  readonly #misjudged = new Set<VirtualNode>();
  /** Rooms that such nodes have lost or taken over, by key: for them no rule holds. */
  readonly #excused = new Set<string>();

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
  }

  /** Returns how often rooms of this id were taken over. */
  count(roomId: string): number {
    return this.#taken.get(roomId)?.count ?? 0;
  }

  /** Returns the nodes on which the room of this id has run since its last takeover, by which no rule is excused. */
  heirs(roomId: string): VirtualNode[] {
    const { key, epoch } = this.#taken.get(roomId) ?? { key: '', epoch: 0 };
    const owners = this.#isJudged(key) ? (this.#owners.get(key) ?? []) : [];

    return owners.filter((owner) => owner.epoch >= epoch).map(({ node }) => node);
  }

  /** Records that a member was told that the node's process has ended, which lives. */
  misjudged(node: VirtualNode): void {
    this.#cluster.note(`${node.machine.host} is said to have ended`);
    this.#misjudged.add(node);
  }

  /** Returns the node that the room has last moved to, or been taken over by; undefined if it has done neither. */
  lastOwner(key: string): VirtualNode | undefined {
    return this.#owners.get(key)?.toSorted((a, b) => b.epoch - a.epoch)[0]?.node;
  }

  /** Records that a room runs on this node from now on. No epoch has two owners. */
  owns(node: VirtualNode, roomId: string): void {
    const key = node.roomKey(roomId);
    if (key === undefined) return;
    const epoch = node.epochOf(roomId);
    const before = this.#owners.get(key) ?? [];
    const same = before.find((owner) => owner.epoch === epoch);
    if (same !== undefined)
      this.#cluster.broken(`room ${roomId} has two owners of epoch ${epoch}: ${same.node.name} and ${node.name}`);
    this.#owners.set(key, [...before, { node, epoch }]);
  }

  /** Records that a standby has taken a room over. No other node may act for the room then. */
  taken(node: VirtualNode, roomId: string): void {
    const key = node.roomKey(roomId);
    this.#taken.set(roomId, { count: this.count(roomId) + 1, key: key ?? '', epoch: node.epochOf(roomId) });
    this.#cluster.events.takenOver(roomId);
    const concerns = (other: VirtualNode): boolean => other === node || other.roomKey(roomId) === key;
    if (key !== undefined && [...this.#misjudged].some(concerns)) this.#excused.add(key);
    const acts = ({ host, machine }: VirtualNode): boolean => !machine.frozen && !host.fence.isFenced(roomId);
    for (const other of this.#cluster.nodes)
      if (other !== node && this.#isJudged(key) && other.roomKey(roomId) === key && acts(other))
        this.#cluster.broken(`${node.name} took room ${roomId} over, although ${other.name} acts for it`);
    this.#cluster.owns(node, roomId);
  }

  /** Records an event. An owner whose room has been taken over publishes none. */
  published(node: VirtualNode, roomId: string, type: string): void {
    const key = node.roomKey(roomId);
    // What a client does with a socket of an ended process reaches nobody.
    if (!this.#isJudged(key) || !node.machine.alive) return;
    const later = this.successor(node, roomId);
    if (later !== undefined)
      this.#cluster.broken(`${node.name} published ${type} of room ${roomId}, which ${later.name} has taken over`);
  }

  /** Returns another node to which the room that runs on this one belongs, which this one need not know yet. */
  successor(node: VirtualNode, roomId: string): VirtualNode | undefined {
    const epoch = node.epochOf(roomId);
    const owners = this.#owners.get(node.roomKey(roomId) ?? '');

    return owners?.find((owner) => owner.epoch > epoch && owner.node !== node)?.node;
  }

  #isJudged(key: string | undefined): key is string {
    return key !== undefined && !this.#excused.has(key);
  }

  /**
   * Must be called when a process ends: its rooms go on at their standbys, unless something else goes wrong as well.
   */
  dies(node: VirtualNode, what: keyof typeof TAKEOVER_MS): void {
    const { world, faults, membership } = this.#cluster;
    const isQuiet = membership !== undefined && this.#cluster.nodes.every(({ machine }) => !machine.frozen);
    if (!isQuiet || node.isStopping || this.#cluster.nodes.length < 3) return;
    for (const [roomId, standby] of node.registry.standby.standbys) {
      const key = node.roomKey(roomId);
      if (key === undefined || this.#cluster.wasSplit) continue;
      world.schedule(world.outside, TAKEOVER_MS[what], () => {
        if (this.#cluster.faults !== faults || this.#cluster.deletions.has(roomId)) return;
        if (!this.#cluster.nodes.some((other) => other.roomKey(roomId) === key))
          this.#cluster.broken(`nobody took room ${roomId} over, although ${standby} was its standby`);
      });
    }
  }
}
