/** The nodes of one history, their events, and the rules that have been broken. */
import { createHash } from 'node:crypto';
import { type RoomConflict, RoomError } from '@bloom/rooms';
import { type ApiCall, refusalIn } from './api-calls.js';
import { Dice } from './dice.js';
import { Events } from './events.js';
import type { HttpAnswer } from './http-face.js';
import type { PlantedFault } from './planted-faults.js';
import { Receivers } from './receivers.js';
import { Takeovers } from './takeovers.js';
import { nameOf, VirtualNode, type VirtualNodeOptions } from './virtual-node.js';
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
  /** `JF_DIST_TICK_TIME` of every node. Default: 8 s. */
  readonly tickTimeMs?: number | undefined;
  /** Most tasks of the history. Default: far more than any needs. */
  readonly maxTurns?: number | undefined;
}

/** What differs between the nodes of a cluster. */
type Started = Omit<
  VirtualNodeOptions,
  | 'world'
  | 'network'
  | 'host'
  | 'events'
  | 'receivers'
  | 'fault'
  | 'hasStandbys'
  | 'onListed'
  | 'onBadLog'
  | 'tickTimeMs'
>;

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
  /** True once several nodes were frozen for so long that no home of an id may have decided about it. */
  wasStalled = false;
  #changes = 0;
  #asked = 0;
  #visitors = 0;
  /** Decides which nodes run an old release. */
  readonly #releases: Dice;
  readonly #oldShare: number;
  /** Names of nodes that have ended, and may have started again. */
  readonly #ended = new Set<string>();
  readonly #lines: string[] = [];
  readonly #nodes = new Map<string, VirtualNode>();
  /** Every node that has ever run. */
  readonly #all: VirtualNode[] = [];
  readonly #seeds: 'all' | 'first';
  readonly #fault: PlantedFault | undefined;
  readonly #tickTimeMs: number | undefined;

  constructor({ seed, nodes: size, fault, hasStandbys = false, tickTimeMs, maxTurns }: ClusterOptions) {
    this.#tickTimeMs = tickTimeMs;
    this.#fault = fault;
    this.hasStandbys = hasStandbys;
    this.world = new VirtualWorld(seed, maxTurns);
    this.#releases = new Dice(seed ^ 0x01d);
    this.#oldShare = this.#releases.pick([0, 0, 0.5]);
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
    return (
      !this.wasSplit && !this.wasStalled && this.membership !== undefined && this.world.nowMs - this.#joinedMs > 2_000
    );
  }

  note(line: string): void {
    this.#lines.push(`${this.world.nowMs.toFixed(3)} ${line}`);
  }

  readonly broken = (rule: string): void => {
    this.note(`BROKEN ${rule}`);
    this.violations.push(rule);
  };

  /**
   * Sends a request to a node's HTTP API. Resolves with the answer, which must be a documented one; never if the node
   * has stopped listening.
   */
  async ask(node: VirtualNode, label: string, call: ApiCall): Promise<HttpAnswer> {
    const { statuses, ...request } = call;
    if (node.hasStopped) return new Promise(() => undefined);
    this.#asked += 1;
    const answer = await node.ask({ ...request, requestId: `request ${String(this.#asked).padStart(12, '0')}` });
    const refusal = answer.status < 400 ? undefined : refusalIn(answer);
    if (refusal !== undefined) this.note(`${label} -> ${refusal}`);
    if (!statuses.includes(answer.status)) this.broken(`${label} failed with ${refusal ?? answer.status}`);

    return answer;
  }

  /** Records a refused connection and returns its code. Anything other than a refusal is a fault. */
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
    const { world } = this;
    const machine = new Machine(host);
    const seeds = (this.#seeds === 'all' ? this.hosts : this.hosts.slice(0, 2)).map(nameOf);
    const onConflict = ({ roomId, kept, shadowed }: RoomConflict): void => {
      this.conflicts.set(roomId, this.conflicts.get(roomId) !== false && (this.wasSplit || this.wasStalled));
      this.note(`${host} conflict ${roomId} kept ${kept} shadowed ${shadowed}`);
    };
    const onMember = (change: string, lost?: string): void => {
      this.#changes += 1;
      this.note(`${host} ${change}`);
      const [what, , reason] = change.split(' ');
      if (what === 'up') this.#joinedMs = world.nowMs;
      if (what === 'up' && !this.hosts.some((other) => change === `up ${nameOf(other)}`))
        this.broken(`${host} took a node with another cookie for a member: ${change}`);
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
        if (!other.machine.frozen && other.movedRooms.includes(roomId) && !this.conflicts.has(roomId))
          this.broken(`room ${roomId} runs on ${other.name}, although ${host} has published its crash`);
      const stops = this.nodes.some(({ name, isStopping }) => isStopping && (name === taker || name === nameOf(host)));
      if (!stops && !this.wasCut && !this.#ended.has(taker))
        this.broken(`room ${roomId} was lost on its way to ${taker}, which lives`);
    };
    const isOld = this.#releases.random() < this.#oldShare;
    world.schedule(machine, 0, () => {
      this.note(`${host} boot${isOld ? ' of the old release' : ''}`);
      const onNewerMessage = (type: string): void =>
        this.broken(`${host} was sent ${type}, which its release does not know`);
      const node = this.#start(machine, {
        seeds,
        isOld,
        onConflict,
        onMoved,
        onTaken,
        onLost,
        onMember,
        onNewerMessage,
      });
      this.#nodes.set(host, node);
    });
  }

  /** Starts a process with another cookie, which dials all nodes. Returns what ends it. */
  visit(): () => void {
    const { world, network } = this;
    this.#visitors += 1;
    const machine = new Machine(`x${this.#visitors}`);
    const onMember = (change: string): void =>
      this.broken(`${machine.host} has another cookie, and is a member: ${change}`);
    const none = (): void => undefined;
    const names = { onConflict: none, onMoved: none, onTaken: none, onLost: none, onMember, onNewerMessage: none };
    const seeds = this.hosts.map(nameOf);
    world.schedule(machine, 0, () => {
      this.note(`${machine.host} visits with another cookie`);
      this.#start(machine, { ...names, seeds, isOld: false, cookie: 'a cookie of others' });
    });

    return () => {
      machine.alive = false;
      network.ended(machine, true);
    };
  }

  #start(machine: Machine, options: Started): VirtualNode {
    const { world, network, events, receivers, hasStandbys } = this;
    const { host } = machine;
    const onBadLog = (rule: string): void => this.broken(`${host} ${rule}`);
    const onListed = (member: string, isListed: boolean | undefined): void => {
      const living = this.nodes.find(({ name, isStopping }) => name === member && !isStopping);
      if (isListed === false && living !== undefined) this.takeovers.misjudged(living);
    };
    const common = {
      onListed,
      world,
      network,
      host,
      events,
      receivers,
      fault: this.#fault,
      hasStandbys,
      onBadLog,
      tickTimeMs: this.#tickTimeMs,
    };
    const node = new VirtualNode({ ...common, ...options }, machine);
    this.#all.push(node);

    return node;
  }

  /** Frees what later histories use again. */
  end(): void {
    for (const node of this.#all) node.release();
  }

  /** Ends the process of a node. With `isReset` its machine notifies the others; otherwise it has lost power. */
  kill(node: VirtualNode, isReset: boolean): void {
    if (this.hasStandbys) this.takeovers.dies(node, isReset ? 'process' : 'machine');
    node.machine.alive = false;
    this.#ended.add(node.name);
    this.network.ended(node.machine, isReset);
  }
}
