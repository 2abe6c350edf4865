/** The nodes of one history, their events, and the rules that have been broken. */
import { createHash } from 'node:crypto';
import { type RoomConflict, RoomError } from '@bloom/rooms';
import { Events } from './events.js';
import type { PlantedFault } from './planted-faults.js';
import { Receivers } from './receivers.js';
import { nameOf, VirtualNode } from './virtual-node.js';
import { VirtualNetwork } from './virtual-network.js';
import { Machine, VirtualWorld } from './virtual-world.js';

export interface ClusterOptions {
  readonly seed: number;
  /** Number of hosts; drawn by the seed if undefined. */
  readonly nodes?: number | undefined;
  /** A fault of every node. */
  readonly fault?: PlantedFault | undefined;
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
  /** True once a fault has happened. */
  wasDisturbed = false;
  /** True once living nodes could not hear each other: from then on an id may have two rooms. */
  wasSplit = false;
  #changes = 0;
  readonly #lines: string[] = [];
  readonly #nodes = new Map<string, VirtualNode>();
  readonly #seeds: 'all' | 'first';
  readonly #fault: PlantedFault | undefined;

  constructor({ seed, nodes: size, fault }: ClusterOptions) {
    this.#fault = fault;
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
    const nodes = this.nodes.filter(({ host }) => !host.draining);
    const isWhole = nodes.every((a) => nodes.every((b) => a === b || a.linkTo(b.name) !== undefined));
    return isWhole ? this.#changes : undefined;
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
      if (this.nodes.some(({ name }) => name === lost)) this.wasSplit = true;
    };
    world.schedule(machine, 0, () => {
      this.note(`${host} boot`);
      const { events, receivers } = this;
      const options = { world, network, host, seeds, events, receivers, fault: this.#fault, onConflict, onMember };
      this.#nodes.set(host, new VirtualNode(options, machine));
    });
  }

  /** Ends the process of a node. With `isReset` its machine notifies the others; otherwise it has lost power. */
  kill(node: VirtualNode, isReset: boolean): void {
    node.machine.alive = false;
    this.network.ended(node.machine, isReset);
  }
}
