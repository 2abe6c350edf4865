/** The people of a history: they join rooms through any node, leave them, lose their connections and come back. */
import { ActorError } from '@bloom/actors';
import type { AttachedPeer, RoomView } from '@bloom/rooms';
import type { Dice } from './dice.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

const MAX_PEOPLE = 40;
const LOST: ReadonlySet<string> = new Set(['NO_CONNECTION', 'TIMEOUT']);

interface Person {
  readonly name: string;
  readonly token: string;
  attached: AttachedPeer | undefined;
}

export class People {
  readonly #cluster: VirtualCluster;
  readonly #people: Person[] = [];

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
  }

  /** Lets somebody do something through one node. */
  act(dice: Dice): void {
    const { world, nodes } = this.#cluster;
    const node = dice.pick(nodes);
    if (node === undefined) return;
    const rooms = nodes.flatMap(({ host }) => host.views());
    const act = dice.pick([this.#join, this.#join, this.#leave, this.#reconnect]);
    const [room, person] = [dice.pick(rooms), dice.pick(this.#people)];
    world.schedule(node.machine, 0, () => void act.call(this, node, room, person));
  }

  async #join(node: VirtualNode, room: RoomView | undefined): Promise<void> {
    if (room === undefined || this.#people.length >= MAX_PEOPLE) return;
    const label = `${node.machine.host} join ${room.id}`;
    try {
      const { peer, token } = await node.rooms.addPeer(room.id, {});
      const person: Person = { name: peer.id, token, attached: undefined };
      this.#people.push(person);
      this.#cluster.note(`${label} -> ${peer.id}`);
      await this.#attach(node, person);
    } catch (error) {
      this.#cluster.refused(label, error);
    }
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

  async #attach(node: VirtualNode, person: Person): Promise<void> {
    const label = `${node.machine.host} connect ${person.name}`;
    const socket = {
      send: () => undefined,
      close: (code: number) => {
        this.#cluster.note(`${label} closed with ${code}`);
        person.attached = undefined;
      },
      ping: async () => true,
    };
    try {
      const attached = await node.rooms.attachPeer(person.token, socket);
      if (typeof attached === 'string') {
        this.#cluster.note(`${label} -> ${attached}`);
        return;
      }
      person.attached = attached;
      attached.receive(JSON.stringify([{ type: 'join', metadata: null }]));
      this.#cluster.note(`${label} -> connected`);
    } catch (error) {
      // A client whose owner is lost or too slow is closed with 1011, and comes back.
      if (error instanceof ActorError && LOST.has(error.code)) this.#cluster.note(`${label} -> ${error.code}`);
      else this.#cluster.refused(label, error);
    }
  }
}
