/** The nodes of one history, their events, and the rules that have been broken. */
import { createHash } from 'node:crypto';
import { type RoomConflict, RoomError } from '@bloom/rooms';
import { Events } from './events.js';
import type { PlantedFault } from './planted-faults.js';
import { Receivers } from './receivers.js';
import { Takeovers } from './takeovers.js';
import { nameOf, VirtualNode } from './virtual-node.js';
import { VirtualNetwork } from './virtual-network.js';
import { Machine, VirtualWorld } from './virtual-world.js';

export interface ClusterOptions {
  readonly seed: number;
  /** Number of hosts; drawn by the seed if undefined. */
  readonly nodes?: number | undefined;
  /** A fault of every node. */
  readonly fault?: PlantedFault | undefined;
  /** Rooms have standbys. Default false. */
  readonly hasStandbys?: boolean | undefined;
}

export class VirtualCluster {
  readonly world: VirtualWorld;
  readonly network: VirtualNetwork;
  readonly hosts: readonly string[];
  /** Ids reported as rooms of two nodes, and whether the nodes had been split by then. */
  readonly conflicts = new Map<string, boolean>();
  readonly violations: string[] = [];
  readonly events = new Events(this);
  readonly receivers = new Receivers(this);
  readonly takeovers = new Takeovers(this);
  readonly hasStandbys: boolean;
  /** Number of faults so far. */
  faults = 0;
  /** Ids that clients have asked to delete. */
  readonly deletions = new Set<string>();
  /** True once a node was cut off for longer than a move waits. */
  wasCut = false;
  /** Called when a node begins to move its rooms away. */
  readonly onEvacuation: ((node: VirtualNode) => void)[] = [];
  /** Called when one node has heard that another one has left in order. */
  readonly onLeft: ((node: VirtualNode) => void)[] = [];
  /** When a node last heard of another one. */
  #joinedMs = 0;
  /** Nodes on which each room has run, by its key. */
  readonly owners = new Map<string, Set<VirtualNode>>();
  /** Ids of rooms that were lost on the way to a node that ended. */
  readonly lost = new Set<string>();
  /** Number of moves of each room, by its key. */
  readonly moves = new Map<string, number>();
  /** True once a fault has happened. */
  wasDisturbed = false;
  /** True once living nodes could not hear each other: from then on an id may have two rooms. */
  wasSplit = false;
  #changes = 0;
  /** Names of nodes that have ended, and may have started again. */
  readonly #ended = new Set<string>();
  readonly #lines: string[] = [];
  readonly #nodes = new Map<string, VirtualNode>();
  readonly #seeds: 'all' | 'first';
  readonly #fault: PlantedFault | undefined;

  constructor({ seed, nodes: size, fault, hasStandbys = false }: ClusterOptions) {
    this.#fault = fault;
    this.hasStandbys = hasStandbys;
    this.world = new VirtualWorld(seed);
    this.network = new VirtualNetwork(this.world);
    const drawn = this.world.pick([3, 3, 3, 4, 4, 5, 7]);
    this.hosts = Array.from({ length: size ?? drawn }, (_, i) => `n${i + 1}`);
    this.#seeds = this.world.pick(['all', 'first']);
    this.network.windowBytes = this.world.pick([512, 4_096, 65_536]);
    for (const host of this.hosts) this.boot(host);
  }

  /** Nodes whose process runs, frozen or not. */
  get nodes(): VirtualNode[] {
    return [...this.#nodes.values()].filter(({ machine }) => machine.alive);
  }

  /** All events, one line each. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Equal for equal histories. */
  get hash(): string {
    return createHash('sha256').update(this.#lines.join('\n')).digest('hex').slice(0, 16);
  }

  /** Changes whenever a node joins or leaves; undefined while some nodes have no link to each other. */
  get membership(): number | undefined {
    const nodes = this.nodes.filter(({ isStopping }) => !isStopping);
    const isWhole = nodes.every((a) => nodes.every((b) => a === b || a.linkTo(b.name) !== undefined));
    return isWhole ? this.#changes : undefined;
  }

  /** True if all nodes have been able to hear each other since the start, and know each other's rooms. */
  get isCalm(): boolean {
    return !this.wasSplit && this.membership !== undefined && this.world.nowMs - this.#joinedMs > 2_000;
  }

  note(line: string): void {
    this.#lines.push(`${this.world.nowMs.toFixed(3)} ${line}`);
  }

  broken(rule: string): void {
    this.note(`BROKEN ${rule}`);
    this.violations.push(rule);
  }

  /** Records a refused request and returns its code. Anything other than a refusal is a fault. */
  refused(label: string, error: unknown): string {
    const code = error instanceof RoomError ? error.code : String(error);
    this.note(`${label} -> ${code}`);
    if (!(error instanceof RoomError)) this.broken(`${label} failed with ${code}`);
    return code;
  }

  node(host: string): VirtualNode | undefined {
    return this.nodes.find(({ machine }) => machine.host === host);
  }

  /** Records that the room has moved to this node. No other node may run it at the same time. */
  owns(node: VirtualNode, roomId: string): void {
    const key = node.roomKey(roomId);
    if (key === undefined) return;
    this.owners.set(key, (this.owners.get(key) ?? new Set()).add(node));
    this.moves.set(key, (this.moves.get(key) ?? 0) + 1);
    if (this.hasStandbys) return this.takeovers.owns(node, roomId);
    for (const other of this.nodes)
      if (other !== node && other.roomKey(roomId) === key)
        this.broken(`room ${roomId} runs on ${other.name} and ${node.name}`);
  }

  /** Starts a node on a host that has none. */
  boot(host: string): void {
    const { world, network } = this;
    const machine = new Machine(host);
    const seeds = (this.#seeds === 'all' ? this.hosts : this.hosts.slice(0, 2)).map(nameOf);
    const onConflict = ({ roomId, kept, shadowed }: RoomConflict): void => {
      this.conflicts.set(roomId, this.conflicts.get(roomId) !== false && this.wasSplit);
      this.note(`${host} conflict ${roomId} kept ${kept} shadowed ${shadowed}`);
    };
    const onMember = (change: string, lost?: string): void => {
      this.#changes += 1;
      this.note(`${host} ${change}`);
      const [what, , reason] = change.split(' ');
      if (what === 'up') this.#joinedMs = world.nowMs;
      const node = this.node(host);
      if (reason === 'leave' && node !== undefined) for (const told of this.onLeft) told(node);
      if (this.nodes.some(({ name }) => name === lost)) this.wasSplit = true;
    };
    const onMoved = (roomId: string): void => {
      this.note(`${host} has taken room ${roomId}`);
      const node = this.node(host);
      if (node !== undefined) this.owns(node, roomId);
    };
    const onTaken = (roomId: string): void => {
      this.note(`${host} has taken over room ${roomId}`);
      const node = this.node(host);
      if (node !== undefined) this.takeovers.taken(node, roomId);
    };
    const onLost = (roomId: string, taker: string): void => {
      this.note(`${host} lost room ${roomId} on its way to ${taker}`);
      this.lost.add(roomId);
      for (const other of this.nodes)
        if (!other.machine.frozen && other.movedRooms.includes(roomId))
          this.broken(`room ${roomId} runs on ${other.name}, although ${host} has published its crash`);
      const stops = this.nodes.some(({ name, isStopping }) => isStopping && (name === taker || name === nameOf(host)));
      if (!stops && !this.wasCut && !this.#ended.has(taker))
        this.broken(`room ${roomId} was lost on its way to ${taker}, which lives`);
    };
    world.schedule(machine, 0, () => {
      this.note(`${host} boot`);
      const options = {
        world,
        network,
        host,
        seeds,
        events: this.events,
        receivers: this.receivers,
        fault: this.#fault,
        hasStandbys: this.hasStandbys,
        onConflict,
        onMoved,
        onTaken,
        onLost,
        onMember,
      };
      this.#nodes.set(host, new VirtualNode(options, machine));
    });
  }

  /** Ends the process of a node. With `isReset` its machine notifies the others; otherwise it has lost power. */
  kill(node: VirtualNode, isReset: boolean): void {
    if (this.hasStandbys) this.takeovers.dies(node);
    node.machine.alive = false;
    this.#ended.add(node.name);
    this.network.ended(node.machine, isReset);
  }
}
