/** The clients of a history, and the rules for each of their answers. */
import { createRoom, dataOf, deleteRoom, getRoom, LIST_ROOMS, moveRoom, refusalIn } from './api-calls.js';
import type { Dice } from './dice.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/** Few ids, so that clients of different nodes often want the same one. */
const IDS = ['kitchen', 'hall', 'attic', 'cellar', 'porch'];

/** The requests that clients make. One listed twice is made twice as often. */
const ASKS = ['create', 'create', 'create', 'generate', 'get', 'get', 'delete', 'delete', 'list', 'move'] as const;

/** The SDKs give up a request after this time. */
const LIMIT_MS = 5_000;

/** A request of a client. */
interface Ask {
  readonly what: (typeof ASKS)[number];
  readonly roomId: string;
  /** Name of the node that a room moves to; null = the one that a new room would go to. */
  readonly to: string | null;
}

interface Found {
  readonly owner: VirtualNode;
  readonly key: string;
  /** State of the links from the asked node to all nodes. */
  readonly links: ReadonlyMap<VirtualNode, number | undefined>;
  /** True if the owner had announced the room to the asked node. */
  readonly known: boolean;
}

export class Requests {
  readonly #cluster: VirtualCluster;
  /** Rooms that were returned to a client and that nobody has asked to delete, by id. */
  readonly #kept = new Map<string, { readonly owner: VirtualNode; readonly key: string }>();
  /** Keys of all rooms returned to clients, each with its owner. */
  readonly #given = new Set<string>();
  /** Generated ids, which clients may request too. */
  readonly #named: string[] = [];
  /** Ids that no client has chosen, so that each belongs to one room only. */
  readonly #generated = new Set<string>();
  /** Ids requested while nodes joined or left, which may have two rooms. */
  readonly #excused = new Set<string>();
  /** Number of deletions of each id so far. */
  readonly #deletions = new Map<string, number>();

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
    // Clients want the rooms of a node that has left, at once.
    cluster.onLeft.push((node) => {
      for (const roomId of cluster.nodes.flatMap((owner) => owner.movedRooms))
        for (const what of ['get', 'create'] as const)
          cluster.world.schedule(node.machine, 0, () => void this.#timed(node, { what, roomId, to: null }));
    });
  }

  /** Lets a client send one request to one node, or one client of each node send the same request at once. */
  ask(dice: Dice): void {
    const { world, nodes } = this.#cluster;
    const what = dice.pick(ASKS);
    const roomId = dice.pick([...IDS, ...this.#named.slice(-3)]);
    const isBurst = dice.random() < 0.1;
    const asked = dice.pick(nodes);
    const ask = { what, roomId, to: dice.pick([null, dice.pick(nodes)?.name ?? null]) };
    for (const node of nodes)
      if (isBurst || node === asked) world.schedule(node.machine, 0, () => void this.#timed(node, ask));
  }

  /** Checks, after the cluster has healed, that every node's answers match the actual state. */
  async end(): Promise<void> {
    const { world, nodes } = this.#cluster;
    const ids = [...new Set(nodes.flatMap(({ host }) => host.views().map(({ id }) => id)))].toSorted();
    this.#cluster.events.end(this.#generated);
    for (const [roomId, { owner, key }] of this.#kept) {
      const owners = [owner, ...(this.#cluster.owners.get(key) ?? [])];
      const areAlive = !this.#cluster.lost.has(roomId) && owners.every(({ machine }) => machine.alive);
      if (areAlive && !nodes.some((node) => node.roomKey(roomId) === key))
        this.#cluster.broken(`room ${roomId} has disappeared from ${owners.map(({ name }) => name).join(' and ')}`);
      else if (!this.#cluster.lost.has(roomId)) this.#checkLives(roomId, key);
    }
    for (const roomId of ids) this.#checkOwners(roomId);
    for (const [roomId, wasSplit] of this.#cluster.conflicts)
      if (!wasSplit && !this.#excused.has(roomId))
        this.#cluster.broken(`two rooms ${roomId} were reported, although nothing was split`);
    if (!this.#cluster.wasDisturbed) this.#checkGiven();
    for (const node of nodes) {
      world.schedule(node.machine, 0, () => void this.#mustList(node));
      for (const roomId of ids) world.schedule(node.machine, 0, () => void this.#mustFind(node, roomId));
    }
    await world.run(10_000);
    for (const node of nodes) {
      const others = nodes.map(({ name }) => name).filter((name) => name !== node.name);
      if (node.members.join() !== others.toSorted().join())
        this.#cluster.broken(`${node.name} sees only the members ${node.members.join()}`);
      for (const roomId of ids) this.#checkPlace(node, roomId);
    }
  }

  /** Performs a request and checks how long its client waited, unless the asked node was frozen in the meantime. */
  async #timed(node: VirtualNode, ask: Ask): Promise<void> {
    const { world } = this.#cluster;
    const { machine } = node;
    const [startMs, freezes] = [world.nowMs, machine.freezes];
    await this.#perform(node, ask);
    const ms = world.nowMs - startMs;
    if (ms > LIMIT_MS && machine.freezes === freezes)
      this.#cluster.broken(`${node.name} took ${ms.toFixed(0)} ms to answer ${ask.what} ${ask.roomId}`);
  }

  async #perform(node: VirtualNode, { what, roomId, to }: Ask): Promise<void> {
    switch (what) {
      case 'create':
        return this.#create(node, roomId);
      case 'generate':
        return this.#create(node, null);
      case 'get':
        return this.#get(node, roomId);
      case 'delete':
        return this.#delete(node, roomId);
      case 'move':
        return this.#move(node, roomId, to);
      default:
        await this.#list(node);
    }
  }

  async #create(node: VirtualNode, roomId: string | null): Promise<void> {
    if (roomId !== null) this.#generated.delete(roomId);
    const before = roomId === null ? undefined : this.#deletions.get(roomId);
    const running = roomId === null ? [] : this.#find(node, roomId);
    const wasCalm = this.#cluster.isCalm;
    const label = `${node.machine.host} create ${roomId ?? 'any'}`;
    const { membership, nodes } = this.#cluster;
    const answer = await this.#cluster.ask(node, label, createRoom(roomId));
    if (answer.status === 201) {
      const { room, jellyfish_address: address } = dataOf<{ room: { id: string }; jellyfish_address: string }>(answer);
      this.#cluster.note(`${label} -> ${room.id} on ${address}`);
      const [only, another] = running;
      const still = only !== undefined && this.#cluster.nodes.some((each) => each.roomKey(room.id) === only.key);
      if (wasCalm && this.#cluster.isCalm && still && another === undefined)
        this.#cluster.broken(`${label} was granted, although ${room.id} ran on ${only.owner.name} all the time`);
      const owner = this.#cluster.node(address);
      const key = owner?.roomKey(room.id);
      if (roomId === null) {
        this.#named.push(room.id);
        this.#generated.add(room.id);
      }
      if (key !== undefined) this.#given.add(key);
      if (owner !== undefined && before === this.#deletions.get(room.id)) {
        if (key !== undefined) this.#kept.set(room.id, { owner, key });
        // A node that has restarted, or stops, has no more rooms.
        else if (nodes.includes(owner) && !owner.host.draining && !owner.relays(room.id))
          this.#cluster.broken(`${label} was answered with room ${room.id}, which ${owner.name} does not have`);
      }
    }
    const isSame = membership !== undefined && membership === this.#cluster.membership;
    if (roomId !== null && !isSame) this.#excused.add(roomId);
  }

  async #get(node: VirtualNode, roomId: string): Promise<void> {
    const label = `${node.machine.host} get ${roomId}`;
    const before = this.#find(node, roomId);
    const answer = await this.#cluster.ask(node, label, getRoom(roomId));
    if (answer.status === 404) this.#checkMissing(node, roomId, before);
    if (answer.status !== 200) return;
    const { id } = dataOf<{ id: string }>(answer);
    this.#cluster.note(`${label} -> found`);
    if (id !== roomId) this.#cluster.broken(`${label} was answered with room ${id}`);
  }

  async #delete(node: VirtualNode, roomId: string): Promise<void> {
    const label = `${node.machine.host} delete ${roomId}`;
    this.#deletions.set(roomId, (this.#deletions.get(roomId) ?? 0) + 1);
    this.#cluster.deletions.add(roomId);
    this.#kept.delete(roomId);
    const before = this.#find(node, roomId);
    const { status } = await this.#cluster.ask(node, label, deleteRoom(roomId));
    if (status === 404) this.#checkMissing(node, roomId, before);
    if (status !== 204) return;
    this.#cluster.note(`${label} -> deleted`);
    // The room may have been created in the meantime.
    this.#kept.delete(roomId);
    const [only, another] = before;
    // Of two rooms with one id, the other one goes on.
    if (this.#cluster.conflicts.has(roomId)) return;
    const still = this.#cluster.nodes.find((each) => each.roomKey(roomId) === only?.key);
    if (only !== undefined && another === undefined && still !== undefined)
      this.#cluster.broken(`the deleted room ${roomId} still runs on ${still.name}`);
  }

  async #move(node: VirtualNode, roomId: string, to: string | null): Promise<void> {
    const { owners, lost } = this.#cluster;
    const label = `${node.machine.host} move ${roomId} to ${to ?? 'any'}`;
    const before = this.#find(node, roomId);
    const deletions = this.#deletions.get(roomId);
    const answer = await this.#cluster.ask(node, label, moveRoom(roomId, to));
    const { status } = answer;
    const isNoNode = /is not a member|no member is called/.test(refusalIn(answer));
    if (status === 404 && !isNoNode) this.#checkMissing(node, roomId, before);
    if (status === 500 && !lost.has(roomId)) this.#cluster.broken(`${label} was answered with a crash of the room`);
    if (status !== 200) return;
    const taker = dataOf<{ to: string }>(answer).to;
    this.#cluster.note(`${label} -> ${taker}`);
    const [only, another] = before;
    const isSure = only !== undefined && another === undefined && deletions === this.#deletions.get(roomId);
    const runs = (owner: VirtualNode): boolean => owner.name === taker;
    const isThere = [...(owners.get(only?.key ?? '') ?? [])].some(runs);
    if (isSure && !isThere) this.#cluster.broken(`${label} was answered with ${taker}, where it has never run`);
  }

  /** Returns the ids in the list of the whole cluster, one for each of their rooms, and the nodes missing from it. */
  async #list(node: VirtualNode): Promise<{ ids: string; unreachable: string }> {
    const label = `${node.machine.host} list`;
    const answer = await this.#cluster.ask(node, label, LIST_ROOMS);
    if (answer.status !== 200) return { ids: '', unreachable: '' };
    const { data, unreachable } = answer.body as { data: { id: string }[]; unreachable: string[] };
    const ids = data.map(({ id }) => id).toSorted();
    this.#cluster.note(`${label} ${ids.join()} unreachable ${unreachable.join()}`);

    return { ids: ids.join(), unreachable: unreachable.join() };
  }

  /** Returns where the room runs now. */
  #find(asker: VirtualNode, roomId: string): Found[] {
    const { nodes } = this.#cluster;
    const links = new Map(nodes.map((node) => [node, node === asker ? 0 : asker.linkTo(node.name)]));
    return nodes.flatMap((owner) => {
      const key = owner.roomKey(roomId);
      if (key === undefined) return [];
      return [{ owner, key, links, known: asker.registry.directory.knows(owner.name, roomId) }];
    });
  }

  /** A node must not deny a room that it could know of throughout its search. */
  #checkMissing(asker: VirtualNode, roomId: string, before: readonly Found[]): void {
    const now = this.#find(asker, roomId);
    for (const { owner, key, links, known } of before) {
      const still = now.find(
        (each) => each.key === key && this.#cluster.takeovers.successor(each.owner, roomId) === undefined,
      );
      if (still === undefined) continue;
      const isSame = (node: VirtualNode): boolean =>
        links.get(node) !== undefined && links.get(node) === still.links.get(node);
      // It may have moved over any of its owners meanwhile.
      const owners = [...(this.#cluster.owners.get(key) ?? []), owner, still.owner];
      if (owners.every(isSame) || (still.owner === owner && known && still.known))
        this.#cluster.broken(`${asker.name} denied room ${roomId}, which runs on ${still.owner.name}`);
    }
  }

  /** A room runs somewhere as long as its last owner lives. */
  #checkLives(roomId: string, key: string): void {
    const last = this.#cluster.takeovers.lastOwner(key);
    const isHere = (node: VirtualNode): boolean => node.roomKey(roomId) === key;
    if (last?.machine.alive === true && !last.isStopping && !this.#cluster.nodes.some(isHere))
      this.#cluster.broken(`room ${roomId} runs nowhere, although its last owner ${last.name} lives`);
  }

  /** Without faults, every room has a client that knows about it. */
  #checkGiven(): void {
    for (const node of this.#cluster.nodes)
      for (const { id } of node.host.views())
        if (!this.#given.has(node.roomKey(id) ?? ''))
          this.#cluster.broken(`nobody was given room ${id} of ${node.name}`);
  }

  #checkOwners(roomId: string): void {
    const owners = this.#cluster.nodes.filter((node) => node.roomKey(roomId) !== undefined);
    if (owners.length < 2) return;
    const names = owners.map(({ name }) => name).join(' and ');
    if (!this.#cluster.conflicts.has(roomId))
      this.#cluster.broken(`nobody reported that ${names} have a room ${roomId}`);
  }

  /** A node uses its own room, otherwise the one that has moved most often, otherwise the oldest. */
  #checkPlace(node: VirtualNode, roomId: string): void {
    const owners = this.#cluster.nodes.filter((each) => each.roomKey(roomId) !== undefined);
    const moves = (owner: VirtualNode): number =>
      this.#cluster.hasStandbys ? owner.epochOf(roomId) : (this.#cluster.moves.get(owner.roomKey(roomId) ?? '') ?? 0);
    const [first] = owners.toSorted(
      (a, b) =>
        moves(b) - moves(a) ||
        (a.host.createdAt(roomId) ?? 0) - (b.host.createdAt(roomId) ?? 0) ||
        (a.name < b.name ? -1 : 1),
    );
    const right = owners.includes(node) ? node : first;
    const found = node.registry.directory.find(roomId)?.node;
    if (right !== undefined && found !== right.name)
      this.#cluster.broken(`${node.name} looks for room ${roomId} on ${found} instead of ${right.name}`);
  }

  async #mustFind(node: VirtualNode, roomId: string): Promise<void> {
    const label = `after healing, ${node.name} get ${roomId}`;
    const { status } = await this.#cluster.ask(node, label, getRoom(roomId));
    if (status !== 200) this.#cluster.broken(`${label} answers ${status}`);
  }

  async #mustList(node: VirtualNode): Promise<void> {
    const { ids, unreachable } = await this.#list(node);
    const all = this.#cluster.nodes.flatMap(({ host }) => host.views().map(({ id }) => id)).toSorted();
    if (ids !== all.join() || unreachable !== '')
      this.#cluster.broken(`after healing, ${node.name} lists ${ids} without ${unreachable} instead of ${all.join()}`);
  }
}
