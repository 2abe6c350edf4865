/** Several nodes in one process, joined by a network that tests cut, freeze and delay. */
import { createActorSystem, type ActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { refusals, unwrap } from '../outcome.js';
import type { RoomConfig, RoomView } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { ClusterRooms } from './cluster-rooms.js';
import type { RoomConflict } from './directory.js';
import { NODE_ACTOR, type OwnRooms } from './node-actor.js';

/** A node's own rooms, as far as placement and directory care: they exist, and carry tracks. */
class FixtureRooms {
  readonly rooms = new Map<string, RoomView>();
  readonly tracks = new Map<string, number>();
  draining = false;
  /** How long a creation takes. */
  creationMs = 0;
  observe: (type: 'roomCreated' | 'roomDeleted', roomId: string) => void = () => {};
  #creating = 0;

  constructor(readonly name: string) {}

  load() {
    let forwardedTracks = 0;
    for (const count of this.tracks.values()) forwardedTracks += count;
    return { forwardedTracks, rooms: this.rooms.size + this.#creating };
  }

  async createRoom(config: RoomConfig): Promise<{ room: RoomView; address: string }> {
    const roomId = config.roomId as string;
    if (this.draining) unwrap(refusals.draining());
    if (this.rooms.has(roomId)) unwrap(refusals.roomExists(roomId));
    this.#creating += 1;
    if (this.creationMs > 0) await new Promise((done) => setTimeout(done, this.creationMs));
    this.#creating -= 1;
    const room: RoomView = { id: roomId, config: { ...config, roomId }, components: [], peers: [] };
    this.rooms.set(roomId, room);
    this.observe('roomCreated', roomId);
    return { room, address: `${this.name}:80` };
  }

  async deleteRoom(roomId: string): Promise<void> {
    if (!this.rooms.delete(roomId)) unwrap(refusals.roomNotFound(roomId));
    this.observe('roomDeleted', roomId);
  }

  async getRoom(roomId: string): Promise<RoomView> {
    return this.rooms.get(roomId) ?? unwrap(refusals.roomNotFound(roomId));
  }

  async listRooms() {
    return { rooms: this.views(), unreachable: [] };
  }

  views(): RoomView[] {
    return [...this.rooms.values()];
  }

  roomRef(roomId: string) {
    return this.rooms.has(roomId) ? { path: `/rooms/${roomId}`, key: `${this.name}/${roomId}` } : undefined;
  }
}

export interface TestNode {
  name: string;
  cluster: ClusterRooms;
  own: FixtureRooms;
  system: ActorSystem;
  conflicts: RoomConflict[];
}

export class TestCluster {
  readonly nodes: TestNode[] = [];
  readonly #links = new Set<string>();
  readonly #frozen = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();
  /** By directed link. */
  readonly #held = new Map<string, (() => void)[]>();

  constructor(names: readonly string[]) {
    for (const name of names) this.nodes.push(this.#start(name));
    for (const [i, a] of names.entries()) for (const b of names.slice(i + 1)) this.link(a, b);
  }

  node(name: string): TestNode {
    return this.nodes.find((node) => node.name === name) as TestNode;
  }

  link(a: string, b: string): void {
    this.#links.add(linkName(a, b));
    this.node(a).cluster.memberUp(b);
    this.node(b).cluster.memberUp(a);
  }

  /** The link is lost, and both sides notice. */
  cut(a: string, b: string, orderly = false): void {
    this.#links.delete(linkName(a, b));
    this.node(a).cluster.memberDown(b, orderly);
    this.node(b).cluster.memberDown(a, orderly);
  }

  /** Takes messages and does not answer; the links stay. */
  freeze(name: string): void {
    this.#frozen.add(name);
  }

  thaw(name: string): void {
    this.#frozen.delete(name);
    for (const deliver of this.#waiting.get(name)?.splice(0) ?? []) deliver();
  }

  /** What `from` says to `to` is on its way until it is let through. */
  hold(from: string, to: string): void {
    this.#held.set(`${from} to ${to}`, []);
  }

  letThrough(from: string, to: string): void {
    const held = this.#held.get(`${from} to ${to}`) ?? [];
    this.#held.delete(`${from} to ${to}`);
    for (const deliver of held) deliver();
  }

  /** Every message that is on its way has been dealt with. */
  async settled(): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await new Promise((done) => setImmediate(done));
      for (const { system } of this.nodes) await system.idle();
    }
  }

  async close(): Promise<void> {
    for (const { system } of this.nodes) await system.close();
  }

  #start(name: string): TestNode {
    const system = createActorSystem({ log: silentLog });
    const own = new FixtureRooms(name);
    const conflicts: RoomConflict[] = [];
    const cluster = new ClusterRooms({
      system,
      port: this.#port(name),
      rooms: own as unknown as OwnRooms & { attachTo: never },
      tokenKey: { secretKeyBase: 'secret' },
      log: silentLog,
      now: () => Date.now(),
      onConflict: (conflict) => conflicts.push(conflict),
    });
    own.observe = (type, roomId) => cluster.observe({ type, roomId });
    return { name, cluster, own, system, conflicts };
  }

  #port(self: string): ClusterPort {
    const reach = (node: string) => node === self || this.#links.has(linkName(self, node));
    const arrive = (node: string, deliver: () => void) => {
      const held = this.#held.get(`${self} to ${node}`);
      if (held) return void held.push(deliver);
      if (!this.#frozen.has(node)) return void setImmediate(deliver);
      const waiting = this.#waiting.get(node) ?? [];
      waiting.push(deliver);
      this.#waiting.set(node, waiting);
    };
    const port = {
      self,
      members: () => this.nodes.map(({ name }) => name).filter((name) => name !== self && reach(name)),
      call: (node: string, message: object, timeoutMs: number) =>
        new Promise((resolve, reject) => {
          if (!reach(node)) return reject(new Error(`no connection to ${node}`));
          const timer = setTimeout(() => reject(new Error(`${node} did not answer`)), timeoutMs);
          arrive(node, () => {
            this.node(node)
              .system.call(NODE_ACTOR, structuredClone(message) as never, timeoutMs)
              .then(
                (reply) => resolve(structuredClone(reply)),
                (error: unknown) => reject(error as Error),
              )
              .finally(() => clearTimeout(timer));
          });
          return undefined;
        }),
      cast: (node: string, message: object) => {
        if (reach(node)) arrive(node, () => this.node(node).system.cast(NODE_ACTOR, structuredClone(message) as never));
      },
    };
    return port as unknown as ClusterPort;
  }
}

function linkName(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}
