/** A network between virtual machines: ordered connections with latency, back-pressure, loss and half-open links. */
import { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { DistributionError, type NodeName, type NodeNetwork, type Reachable } from '@bloom/distribution';
import type { Machine, VirtualWorld } from './virtual-world.js';

/** How long a machine tries to connect to an address that does not answer. */
const CONNECT_MS = 5_000;
/** How long it waits for a port mapper. */
const MAPPER_TIMEOUT_MS = 500;

interface Segment {
  /** null ends the stream; undefined resets the connection. */
  readonly bytes: Buffer | null | undefined;
}

interface Listening {
  readonly machine: Machine;
  readonly server: EventEmitter;
}

export class VirtualNetwork {
  /** Range of the one-way latency, drawn for each segment. */
  latencyMs: readonly [number, number] = [0.2, 2];
  /** Bytes that a connection accepts before its reader has read any. */
  windowBytes = 64 * 1024;
  readonly #world: VirtualWorld;
  readonly #listening = new Map<string, Listening>();
  readonly #sockets = new Set<VirtualSocket>();
  /** Directions that lose everything, such as `a>b`. */
  readonly #blocked = new Set<string>();
  /** Additional latency by direction. */
  readonly #delays = new Map<string, number>();
  /** Hosts without a port mapper. */
  readonly #unmapped = new Set<string>();
  /** Hosts that have lost their power: nothing answers there. */
  readonly #darkened = new Set<string>();
  /** Hosts whose names lead to another one. */
  readonly #misnamed = new Map<string, string>();
  #creations = 3;

  constructor(world: VirtualWorld) {
    this.#world = world;
  }

  /** The network as one machine sees it. */
  of(machine: Machine): NodeNetwork {
    return {
      open: async (alive) => this.#open(machine, alive),
      connect: (target, signal) => this.#connect(machine, target, signal),
    };
  }

  isBlocked(from: string, to: string): boolean {
    return this.#blocked.has(`${from}>${to}`);
  }

  /** Drops everything from one host to the other; the other direction decides whether the link is half-open or dead. */
  block(from: string, to: string): void {
    this.#blocked.add(`${from}>${to}`);
  }

  /** Restores the direction: TCP retransmits what was lost. */
  unblock(from: string, to: string): void {
    this.#blocked.delete(`${from}>${to}`);
    for (const socket of this.#sockets) if (socket.machine.host === from && socket.remoteAddress === to) socket.pump();
  }

  delay(from: string, to: string, ms: number): void {
    this.#delays.set(`${from}>${to}`, ms);
  }

  /** Ends or restarts the port mapper of a host: without it, nobody can connect to the host's node. */
  map(host: string, isRunning: boolean): void {
    if (isRunning) this.#unmapped.delete(host);
    else this.#unmapped.add(host);
  }

  /** Returns whether the port mapper of a host lists its node; undefined if it does not answer. */
  async lists(machine: Machine, alive: string): Promise<boolean | undefined> {
    const [from, to] = [machine.host, this.#misnamed.get(alive) ?? alive];
    const clock = this.#world.clockOf(machine);
    const isLost = this.isBlocked(from, to) || this.isBlocked(to, from) || this.#unmapped.has(to);
    await new Promise<void>((resolve) => {
      clock.setTimeout(resolve, isLost ? MAPPER_TIMEOUT_MS : this.latency(from, to) + this.latency(to, from));
    });
    if (isLost || this.#darkened.has(to)) return undefined;

    // The host that a wrong name leads to does not know the node.
    return to === alive && this.#listening.has(alive);
  }

  /** Lets the name of a host lead to another one, as a stale DNS record does, or to itself again. */
  misname(host: string, other: string | undefined): void {
    if (other === undefined) this.#misnamed.delete(host);
    else this.#misnamed.set(host, other);
  }

  /** Resets the connections between two hosts, as a middlebox does after losing its state. */
  reset(a: string, b: string): void {
    for (const { machine, remoteAddress, peer } of this.#sockets) {
      if (machine.host === a && remoteAddress === b) peer?.resetLater(0);
      if (machine.host === b && remoteAddress === a) peer?.resetLater(0);
    }
  }

  /** Ends the sockets of a machine whose process has died. Without `isReset` the others learn nothing. */
  ended(machine: Machine, isReset: boolean): void {
    const listening = this.#listening.get(machine.host);
    if (listening?.machine === machine) this.#listening.delete(machine.host);
    if (!isReset) this.#darkened.add(machine.host);
    for (const socket of this.#sockets) {
      if (socket.machine !== machine) continue;
      this.#sockets.delete(socket);
      if (isReset && socket.peer !== undefined)
        socket.peer.resetLater(this.latency(machine.host, socket.peer.machine.host));
    }
  }

  latency(from: string, to: string): number {
    return this.#world.between(...this.latencyMs) + (this.#delays.get(`${from}>${to}`) ?? 0);
  }

  /** True if a process other than `machine` answers for its host now. */
  isReplaced(machine: Machine): boolean {
    const now = this.#listening.get(machine.host);
    return now !== undefined && now.machine !== machine;
  }

  /** Number of sockets of the machine that its program has not closed. */
  socketsOf(machine: Machine): number {
    return [...this.#sockets].filter((socket) => socket.machine === machine && !socket.destroyed).length;
  }

  forget(socket: VirtualSocket): void {
    this.#sockets.delete(socket);
  }

  #open(machine: Machine, alive: string): Reachable {
    const server = Object.assign(new EventEmitter(), {
      listening: true,
      address: () => ({ port: 1 }),
      close: (done?: () => void) => {
        server.listening = false;
        if (this.#listening.get(alive)?.machine === machine) this.#listening.delete(alive);
        done?.();
      },
    });
    this.#listening.set(alive, { machine, server });
    this.#darkened.delete(alive);
    this.#creations += 1;
    const registration = { creation: this.#creations, registered: true, close: () => {} };
    return { server: server as unknown as Server, registration };
  }

  #connect(machine: Machine, target: NodeName, signal: AbortSignal): Promise<Socket> {
    const [from, to] = [machine.host, this.#misnamed.get(target.alive) ?? target.alive];
    const clock = this.#world.clockOf(machine);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (): void => {
        isOver = true;
        clock.clearTimeout(timer);
      };
      const fail = (why: string): void => {
        end();
        reject(new DistributionError('NODE_UNREACHABLE', `${target.full} cannot be reached: ${why}`));
      };
      const timer = clock.setTimeout(() => fail('no answer'), CONNECT_MS);
      signal.addEventListener('abort', () => fail('given up'), { once: true });
      const there = this.latency(from, to);
      this.#world.schedule(this.#world.outside, there, () => {
        if (this.isBlocked(from, to) || this.isBlocked(to, from)) return;
        const listening = this.#unmapped.has(to) ? undefined : this.#listening.get(to);
        const back = this.latency(to, from);
        if (listening === undefined) {
          this.#world.schedule(machine, back, () => fail('refused'));
          return;
        }
        const [near, far] = this.#pair(machine, listening.machine);
        // A connection can end before either program has it.
        const lost = (): void => fail('reset');
        near.on('error', lost);
        far.on('error', () => {});
        this.#world.schedule(listening.machine, 0, () => {
          far.removeAllListeners('error');
          // A node that is still starting accepts no connection yet.
          if (!listening.server.emit('connection', far)) far.destroy();
        });
        this.#world.schedule(machine, back, () => {
          if (isOver) return void near.destroy();
          if (near.destroyed) return fail('reset');
          end();
          near.off('error', lost);
          resolve(near as unknown as Socket);
        });
      });
    });
  }

  #pair(a: Machine, b: Machine): [VirtualSocket, VirtualSocket] {
    const near = new VirtualSocket(this, this.#world, { machine: a, remoteAddress: b.host });
    const far = new VirtualSocket(this, this.#world, { machine: b, remoteAddress: a.host });
    near.peer = far;
    far.peer = near;
    this.#sockets.add(near).add(far);
    return [near, far];
  }
}

/** One end of a connection, with the part of `Socket` that the distribution uses. */
class VirtualSocket extends Duplex {
  readonly connecting = false;
  readonly machine: Machine;
  readonly remoteAddress: string;
  peer: VirtualSocket | undefined;
  readonly #network: VirtualNetwork;
  readonly #world: VirtualWorld;
  /** Segments that have not left because the direction is blocked. */
  readonly #waiting: Segment[] = [];
  #lastMs = 0;
  /** Bytes that the sender does not know to be read. */
  #unreadBytes = 0;
  /** When the sender hears what was read, with the number of bytes, oldest first. */
  readonly #acknowledged: { readonly atMs: number; readonly bytes: number }[] = [];
  /** Called when the connection accepts more, after it was full. */
  #onRoom: (() => void) | undefined;
  #ended = false;

  constructor(network: VirtualNetwork, world: VirtualWorld, ends: Pick<VirtualSocket, 'machine' | 'remoteAddress'>) {
    super({ allowHalfOpen: false });
    this.#network = network;
    this.#world = world;
    this.machine = ends.machine;
    this.remoteAddress = ends.remoteAddress;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#unreadBytes += bytes.length;
    this.#send({ bytes });
    if (!this.#isFull) done();
    else this.#onRoom = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ended = true;
    this.#send({ bytes: null });
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#ended) this.#send({ bytes: undefined });
    done(error);
  }

  resetLater(ms: number): void {
    this.#world.schedule(this.machine, ms, () => {
      this.#ended = true;
      this.#network.forget(this);
      this.destroy(new Error('read ECONNRESET'));
    });
  }

  /** Sends waiting segments in order, unless the direction is blocked. */
  pump(): void {
    const { peer } = this;
    if (peer === undefined) return;
    const [from, to] = [this.machine.host, this.remoteAddress];
    while (this.#waiting.length > 0 && !this.#network.isBlocked(from, to)) {
      const segment = this.#waiting.shift() as Segment;
      this.#lastMs = Math.max(this.#lastMs, this.#world.nowMs + this.#network.latency(from, to));
      this.#world.schedule(this.#world.outside, this.#lastMs - this.#world.nowMs, () => this.#arrive(peer, segment));
    }
  }

  /** Whether the reader has to read more before the sender may write. */
  get #isFull(): boolean {
    const nowMs = this.#world.nowMs;
    while ((this.#acknowledged[0]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs)
      this.#unreadBytes -= this.#acknowledged.shift()?.bytes ?? 0;

    return this.#unreadBytes > this.#network.windowBytes;
  }

  /** The other end has read these bytes, and the sender hears of it later. */
  #acknowledge(bytes: number, backMs: number): void {
    const { nowMs } = this.#world;
    const atMs = Math.max(this.#acknowledged.at(-1)?.atMs ?? 0, nowMs + backMs);
    this.#acknowledged.push({ atMs, bytes });
    if (this.#onRoom !== undefined) this.#world.schedule(this.machine, atMs - nowMs, () => this.#resume());
  }

  /** Lets the sender write, if there is room again. */
  #resume(): void {
    const resume = this.#onRoom;
    if (resume === undefined || this.#isFull) return;
    this.#onRoom = undefined;
    resume();
  }

  #send(segment: Segment): void {
    this.#waiting.push(segment);
    this.pump();
  }

  /** A segment reaches the host of the other end, whose process may have ended. */
  #arrive(peer: VirtualSocket, { bytes }: Segment): void {
    if (!peer.machine.alive) {
      if (this.#network.isReplaced(peer.machine))
        this.resetLater(this.#network.latency(this.remoteAddress, this.machine.host));
      return;
    }
    this.#world.enter(peer.machine, () => {
      const backMs = this.#network.latency(this.remoteAddress, this.machine.host);
      if (bytes === undefined) {
        if (!peer.destroyed) peer.resetLater(0);
      } else if (peer.destroyed) {
        if (!this.destroyed) this.resetLater(backMs);
      } else {
        peer.push(bytes);
        this.#acknowledge(bytes?.length ?? 0, backMs);
      }
    });
  }
}
