/** The people of a history: they join rooms through any node, leave them, lose their connections and come back. */
import { ActorError } from '@bloom/actors';
import type { AttachedPeer, RoomView } from '@bloom/rooms';
import { addPeer, dataOf } from './api-calls.js';
import type { Dice } from './dice.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

const MAX_PEOPLE = 40;
/** Close code of a peer whose room has moved. */
const MOVED = 1012;
/** A bit less than people of a moved room have to come back. */
const RETURN_MS = 9_000;

const LOST: ReadonlySet<string> = new Set(['NO_CONNECTION', 'TIMEOUT']);

interface Person {
  readonly name: string;
  readonly token: string;
  readonly roomId: string;
  attached: AttachedPeer | undefined;
  /** When the room moved to another node, and how often the person had been reported as disconnected by then. */
  moved?: { readonly atMs: number; readonly disconnections: number } | undefined;
}

export class People {
  readonly #cluster: VirtualCluster;
  readonly #people: Person[] = [];

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
    cluster.onEvacuation.push((node) => {
      for (const person of this.#people) if (node.host.view(person.roomId) !== undefined) this.#talk(person, 100);
    });
  }

  /** Lets somebody do something through one node. */
  act(dice: Dice): void {
    const { world, nodes } = this.#cluster;
    const node = dice.pick(nodes);
    if (node === undefined) return;
    const rooms = nodes.flatMap(({ host }) => host.views());
    const act = dice.pick([this.#join, this.#join, this.#leave, this.#reconnect, this.#say, this.#say]);
    const [room, person] = [dice.pick(rooms), dice.pick(this.#people)];
    world.schedule(node.machine, 0, () => void act.call(this, node, room, person));
  }

  async #join(node: VirtualNode, room: RoomView | undefined): Promise<void> {
    if (room === undefined || this.#people.length >= MAX_PEOPLE) return;
    const label = `${node.machine.host} join ${room.id}`;
    const answer = await this.#cluster.ask(node, label, addPeer(room.id));
    if (answer.status !== 201) return;
    const { peer, token } = dataOf<{ peer: { id: string }; token: string }>(answer);
    const person: Person = { name: peer.id, token, roomId: room.id, attached: undefined };
    this.#people.push(person);
    this.#cluster.note(`${label} -> ${peer.id}`);
    await this.#attach(node, person);
  }

  async #reconnect(node: VirtualNode, _room: unknown, person: Person | undefined): Promise<void> {
    if (person !== undefined) await this.#attach(node, person);
  }

  async #leave(_node: VirtualNode, _room: unknown, person: Person | undefined): Promise<void> {
    if (person?.attached === undefined) return;
    this.#cluster.note(`${person.name} hangs up`);
    person.attached.detach('closed_by_client');
    person.attached = undefined;
  }

  async #say(_node: VirtualNode, _room: unknown, person: Person | undefined): Promise<void> {
    if (person !== undefined) this.#talk(person, 20);
  }

  /** Lets a person write to the others over a data channel every few milliseconds. */
  #talk(person: Person, untilMs: number): void {
    const { world, nodes, events } = this.#cluster;
    const { name: peerId, roomId } = person;
    const say = (owner: VirtualNode): void => {
      const view = owner.host.view(roomId);
      const emit = owner.media.emit.get(roomId);
      const isThere = view?.peers.some(({ id, status }) => id === peerId && status === 'connected') === true;
      if (person.attached === undefined || emit === undefined || !isThere) return;
      emit({ type: 'dataMessage', peerId, label: 'chat', to: [], data: events.said(roomId, owner) });
    };
    for (let ms = 0; ms < untilMs; ms += 4)
      for (const owner of nodes) world.schedule(owner.machine, ms, () => say(owner));
  }

  /** Lets a person whose room has moved come back, as SDKs do, until somebody lets them in. */
  #comeBack(person: Person): void {
    const { world, events } = this.#cluster;
    person.moved = { atMs: world.nowMs, disconnections: events.disconnections(person.name) };
    const attempt = (): void => {
      const node = world.pick(this.#cluster.nodes);
      const isOver = person.attached !== undefined || world.nowMs - (person.moved?.atMs ?? 0) > RETURN_MS;
      if (isOver || node === undefined) return;
      world.schedule(node.machine, 0, () => void this.#attach(node, person));
      world.schedule(world.outside, world.between(500, 2_000), attempt);
    };
    world.schedule(world.outside, world.between(10, 1_000), attempt);
  }

  /** Nobody who comes back in time to a room that has moved was ever away, unless the owner cannot hear the socket. */
  #checkReturn(person: Person): void {
    const { moved, name, roomId } = person;
    const { world, events, wasSplit } = this.#cluster;
    person.moved = undefined;
    if (moved === undefined || wasSplit || world.nowMs - moved.atMs > RETURN_MS) return;
    // The answer to the person who was let in may be late.
    if (events.endedSince(roomId, moved.atMs)) return;
    if (events.disconnections(name) > moved.disconnections)
      this.#cluster.broken(`${name} came back to a room that had moved, and was reported as disconnected`);
  }

  async #attach(node: VirtualNode, person: Person): Promise<void> {
    if (node.hasStopped) return;
    const label = `${node.machine.host} connect ${person.name}`;
    let isClosed = false;
    let own: AttachedPeer | undefined;
    const socket = {
      send: () => undefined,
      close: (code: number) => {
        this.#cluster.note(`${label} closed with ${code}`);
        isClosed = true;
        // The end of a real websocket follows its close frame.
        this.#cluster.world.schedule(node.machine, 1, () => own?.detach('closed_by_server'));
        // The person may have come back through another one, while the owner of this one was frozen.
        if (own !== person.attached) return;
        person.attached = undefined;
        if (code === MOVED) this.#comeBack(person);
      },
      ping: async () => true,
    };
    try {
      const attached = await node.rooms.attachPeer(person.token, socket);
      if (typeof attached === 'string') {
        this.#cluster.note(`${label} -> ${attached}`);
        return;
      }
      if (isClosed) return attached.detach('closed_by_server');
      own = attached;
      person.attached = attached;
      this.#checkReturn(person);
      attached.receive(JSON.stringify([{ type: 'join', metadata: null }]));
      this.#cluster.note(`${label} -> connected`);
    } catch (error) {
      // A client whose owner is lost or too slow is closed with 1011, and comes back.
      if (error instanceof ActorError && LOST.has(error.code)) this.#cluster.note(`${label} -> ${error.code}`);
      else this.#cluster.refused(label, error);
    }
  }
}
