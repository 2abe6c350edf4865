/** Several nodes in one process, joined by a network that tests can cut, freeze and delay. */
import { openActorSystem, type ActorSystem } from '@bloom/actors';
import { type Log, silentLog } from '@bloom/log';
import { type Clock, systemClock } from '@bloom/time';
import { RoomRegistry } from '../cluster/room-registry.js';
import type { ClusterPort } from '../cluster/cluster-port.js';
import type { RoomConflict } from '../cluster/directory.js';
import { NODE_ACTOR } from '../cluster/node-messages.js';
import { RoomHost } from '../room-host.js';
import type { RoomsLoad } from '../room-reports.js';
import { RoomRouter } from '../room-router.js';
import { scriptedSession, TestMedia } from './test-node.js';

const SECRET = 'secret';

/** A host that reports as many forwarded tracks as a test sets. */
class LoadedHost extends RoomHost {
  forwardedTracks = 0;

  override load(): RoomsLoad {
    return { ...super.load(), forwardedTracks: this.forwardedTracks };
  }

  get ids(): string[] {
    return this.views().map(({ id }) => id);
  }
}

export interface ClusterNode {
  name: string;
  rooms: RoomRouter;
  registry: RoomRegistry;
  host: LoadedHost;
  media: TestMedia;
  system: ActorSystem;
  conflicts: RoomConflict[];
  /** Notifications about rooms, such as `roomCreated kitchen`. */
  news: string[];
}

/** A ref to another node's actor as it arrives in a message. */
interface ForeignRef {
  path: string;
  key: string;
  node: string;
}

export class TestCluster {
  readonly nodes: ClusterNode[] = [];
  #lastTime = 0;
  readonly #links = new Set<string>();
  readonly #frozen = new Set<string>();
  readonly #killed = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Messages held back, by directed link. */
  readonly #held = new Map<string, (() => void)[]>();

  /** What happens when a message of a type is next sent between two nodes. */
  readonly #steps = new Map<string, () => unknown>();

  readonly #log: Log;
  readonly #clock: Clock;

  /** `clock` is for the time limits of the nodes and of their calls. */
  constructor(names: readonly string[], { log = silentLog, clock = systemClock }: { log?: Log; clock?: Clock } = {}) {
    this.#log = log;
    this.#clock = clock;
    for (const name of names) this.nodes.push(this.#start(name));
    for (const [i, a] of names.entries()) for (const b of names.slice(i + 1)) this.link(a, b);
  }

  node(name: string): ClusterNode {
    return this.nodes.find((node) => node.name === name) as ClusterNode;
  }

  /** Nodes that have not been killed. */
  get living(): ClusterNode[] {
    return this.nodes.filter(({ name }) => !this.#killed.has(name));
  }

  link(a: string, b: string): void {
    this.#links.add(linkName(a, b));
    this.node(a).registry.memberUp(b);
    this.node(b).registry.memberUp(a);
  }

  /** Loses the link, which both sides notice. */
  cut(a: string, b: string, orderly = false): void {
    this.#links.delete(linkName(a, b));
    this.node(a).registry.memberDown(b, orderly);
    this.node(b).registry.memberDown(a, orderly);
  }

  /** Makes a node accept messages without answering; its links stay up. */
  freeze(name: string): void {
    this.#frozen.add(name);
  }

  thaw(name: string): void {
    this.#frozen.delete(name);
    for (const deliver of this.#waiting.get(name)?.splice(0) ?? []) deliver();
  }

  /** Holds back messages from `from` to `to` until they are let through. */
  hold(from: string, to: string): void {
    this.#held.set(`${from} to ${to}`, []);
  }

  letThrough(from: string, to: string): void {
    const held = this.#held.get(`${from} to ${to}`) ?? [];
    this.#held.delete(`${from} to ${to}`);
    for (const deliver of held) deliver();
  }

  /** Runs `act` once, right before the next message of this type is sent. */
  before(type: string, act: () => unknown): void {
    this.#steps.set(type, act);
  }

  /** Ends a node without a word. Its links are lost, and it never answers again. */
  kill(name: string): void {
    this.#killed.add(name);
    this.freeze(name);
    for (const { name: other } of this.nodes) {
      if (!this.#links.delete(linkName(name, other))) continue;
      this.node(other).registry.memberDown(name, false);
    }
  }

  /** Resolves when every message in flight has been handled. */
  async settled(): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await new Promise((done) => setImmediate(done));
      for (const { system } of this.nodes) await system.idle();
    }
  }

  async close(): Promise<void> {
    this.#links.clear();
    for (const { system } of this.nodes) await system.close();
  }

  #start(name: string): ClusterNode {
    const system = openActorSystem({ log: silentLog, clock: this.#clock });
    const media = new TestMedia();
    const conflicts: RoomConflict[] = [];
    const news: string[] = [];
    // No two rooms of a test have the same age.
    const wall = (): number => {
      this.#lastTime = Math.max(this.#lastTime + 0.001, Date.now());
      return this.#lastTime;
    };
    const given = this.#clock;
    const clock: Clock = {
      now: () => given.now(),
      wall,
      setTimeout: (run, ms) => given.setTimeout(run, ms),
      clearTimeout: (timer) => given.clearTimeout(timer),
    };
    const options = { log: this.#log, secretKeyBase: SECRET, clock };
    const host = new LoadedHost({
      ...options,
      system,
      engine: media,
      createSession: scriptedSession,
      events: ({ type, roomId }) => {
        registry.observe({ type, roomId });
        news.push(`${type} ${roomId}`);
      },
      address: `${name}:80`,
      webrtcEnabled: true,
    });
    const registry: RoomRegistry = new RoomRegistry({
      system,
      port: this.#port(name),
      host,
      log: this.#log,
      clock,
      onConflict: (conflict) => conflicts.push(conflict),
    });
    const rooms = new RoomRouter({ ...options, system: this.#withNetwork(name, system), host, registry });

    return { name, rooms, registry, host, media, system, conflicts, news };
  }

  #reach({ type }: { type: string }): void {
    const act = this.#steps.get(type);
    this.#steps.delete(type);
    act?.();
  }

  #isLinked(from: string, to: string): boolean {
    return from === to || this.#links.has(linkName(from, to));
  }

  /** Delivers a message from one node to another, subject to the state of the network. */
  #deliver(from: string, to: string, deliver: () => void): void {
    const held = this.#held.get(`${from} to ${to}`);
    if (held !== undefined) return void held.push(deliver);
    if (!this.#frozen.has(to)) return void setImmediate(deliver);
    const waiting = this.#waiting.get(to) ?? [];
    waiting.push(deliver);
    this.#waiting.set(to, waiting);
  }

  #call([from, to]: readonly [string, string], timeoutMs: number, run: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#isLinked(from, to)) return reject(new Error(`no connection to ${to}`));
      const timer = this.#clock.setTimeout(() => reject(new Error(`${to} did not answer`)), timeoutMs);
      this.#deliver(from, to, () => {
        run()
          .then((reply) => resolve(travelled(reply, to)), reject)
          .finally(() => this.#clock.clearTimeout(timer));
      });
      return undefined;
    });
  }

  /** Returns the system of a node whose calls to other nodes' actors go over the network. */
  #withNetwork(self: string, system: ActorSystem): ActorSystem {
    const call = (ref: ForeignRef, message: object, timeoutMs: number): unknown =>
      ref.node === undefined
        ? system.call(ref as never, message as never, timeoutMs)
        : this.#call([self, ref.node], timeoutMs, () =>
            this.node(ref.node).system.call(ref as never, structuredClone(message) as never, timeoutMs),
          );
    return {
      call,
      forRequest: (requestId: string, face?: string) => ({ ...system.forRequest(requestId, face), call }),
      spawn: system.spawn.bind(system),
      stop: system.stop.bind(system),
    } as unknown as ActorSystem;
  }

  #port(self: string): ClusterPort {
    const port = {
      self,
      members: () => this.nodes.map(({ name }) => name).filter((name) => name !== self && this.#isLinked(self, name)),
      received: () => 0,
      releaseOf: () => null,
      speaks: () => true,
      call: (node: string, message: { type: string }, { timeoutMs }: { timeoutMs: number }) => {
        this.#reach(message);
        return this.#call([self, node], timeoutMs, () =>
          this.node(node).system.call(NODE_ACTOR, travelled(message, self) as never, timeoutMs),
        );
      },
      cast: (node: string, message: { type: string }) => {
        this.#reach(message);
        if (!this.#isLinked(self, node)) return false;
        this.#deliver(self, node, () => this.node(node).system.cast(NODE_ACTOR, travelled(message, self) as never));
        return true;
      },
    };
    return port as unknown as ClusterPort;
  }
}

/** Returns a copy of a node's message whose refs name that node. */
function travelled(value: unknown, node: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => travelled(item, node));
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, travelled(inner, node)]));
  return 'path' in copy && 'key' in copy && !('node' in copy) ? { ...copy, node } : copy;
}

function linkName(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}
