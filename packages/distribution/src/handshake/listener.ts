import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import type { Log } from '@bloom/log';
import { networkOf } from '@bloom/net';
import type { Clock } from '@bloom/time';
import { DistributionError, type HandshakeFailure } from '../errors.js';
import { AcceptRate } from './accept-rate.js';
import type { Authenticated } from './dialer.js';
import { Acceptor, type Decision, type Identity, type Secrets } from './handshake.js';

export interface ListenAddress {
  /** Default 127.0.0.1. */
  readonly address?: string;
  /** Port range. `minPort` alone means exactly that port; neither means any port. */
  readonly minPort?: number;
  readonly maxPort?: number;
}

export interface ListenerOptions {
  readonly self: Identity;
  readonly secrets: Secrets;
  readonly clock: Clock;
  /** Time limit for each step of a handshake. */
  readonly stepTimeoutMs: number;
  /** Maximum number of connections that have not yet proved that they know the cookie. */
  readonly maxPending: number;
  readonly maxAcceptsPerSecond: number;
  /** Returns the status for a node that has sent its name, or a name for one that asks for it. */
  readonly decide: (remote: Identity, address: string) => Decision;
  /**
   * Called when a node has authenticated. The owner drops its earlier connection, calls `acknowledge` and takes the
   * socket.
   */
  readonly up: (accepted: Authenticated, acknowledge: () => void) => void;
  readonly failed: (why: HandshakeFailure | 'rate', address: string, node: string | undefined) => void;
}

interface Pending {
  readonly socket: Socket;
  readonly address: string;
  readonly machine: Acceptor;
  timer: unknown;
  readonly data: (bytes: Buffer) => void;
  readonly leave: () => void;
}

/**
 * Listens on the first free port of the range. Connections are refused until a `Listener` takes over the server.
 * @throws DistributionError CANNOT_LISTEN when no port of the range is free
 */
export async function bindServer({ address = '127.0.0.1', minPort, maxPort }: ListenAddress): Promise<Server> {
  const first = minPort ?? 0;
  const last = minPort === undefined ? 0 : (maxPort ?? minPort);
  for (let port = first; port <= last; port++) {
    const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
    server.on('connection', refuse);
    const error = await listenOn(server, { host: address, port });
    if (error === undefined) return server;
    if (error.code !== 'EADDRINUSE') {
      const message = `cannot listen on ${address}:${port}: ${error.message}`;
      throw new DistributionError('CANNOT_LISTEN', message, { cause: error });
    }
  }
  throw new DistributionError('CANNOT_LISTEN', `no port of ${first}..${last} on ${address} is free`);
}

/**
 * Listens on a Unix socket. The permissions of its directory decide who can reach it.
 * @throws DistributionError CANNOT_LISTEN
 */
export async function bindSocket(path: string): Promise<Server> {
  const server = createServer();
  server.on('connection', refuse);
  const error = await listenOn(server, { path });
  if (error === undefined) return server;
  throw new DistributionError('CANNOT_LISTEN', `cannot listen on ${path}: ${error.message}`, { cause: error });
}

/** Returns the port of a server; 0 without a server and after it has closed. */
export function portOf(server: Server | undefined): number {
  const address = server?.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Accepts connections and performs their handshakes. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #rate: AcceptRate;
  readonly #pending = new Set<Pending>();

  constructor(server: Server | undefined, options: ListenerOptions) {
    this.#options = options;
    this.#rate = new AcceptRate(options.clock, options.maxAcceptsPerSecond);
    server?.off('connection', refuse).on('connection', (socket: Socket) => this.#accept(socket));
  }

  /** True while a node of that name is in the middle of a handshake with us; with `address`, one from there. */
  isShaking(node: string, address?: string): boolean {
    for (const { machine, address: from } of this.#pending) {
      if (machine.remote?.name === node && (address === undefined || from === address)) return true;
    }
    return false;
  }

  /** Drops every handshake. */
  stop(): void {
    for (const pending of this.#pending) this.#drop(pending);
  }

  #accept(socket: Socket): void {
    const address = socket.remoteAddress ?? 'unknown';
    socket.on('error', () => socket.destroy());
    if (!this.#rate.take(address)) {
      socket.destroy();
      this.#options.failed('rate', address, undefined);
      return;
    }
    if (this.#pending.size >= this.#options.maxPending) this.#makeRoom();
    const { self, decide, secrets } = this.#options;
    const pending: Pending = {
      socket,
      address,
      machine: new Acceptor(self, (remote) => decide(remote, address), secrets),
      timer: undefined,
      data: (bytes) => this.#data(pending, bytes),
      leave: () => this.#leave(pending),
    };
    this.#pending.add(pending);
    this.#expect(pending);
    socket.on('data', pending.data).on('close', pending.leave);
  }

  /** Drops the oldest handshake of the address with the most pending ones; known addresses come last. */
  #makeRoom(): void {
    const counts = new Map<string, number>();
    for (const { address } of this.#pending) counts.set(networkOf(address), (counts.get(networkOf(address)) ?? 0) + 1);
    let chosen: Pending | undefined;
    let most = 0;
    for (const pending of this.#pending) {
      const count = counts.get(networkOf(pending.address)) as number;
      const weight = this.#rate.isKnown(pending.address) ? count : count + this.#options.maxPending;
      if (weight <= most) continue;
      chosen = pending;
      most = weight;
    }
    this.#drop(chosen as Pending);
  }

  #data(pending: Pending, bytes: Buffer): void {
    const { socket, machine, address } = pending;
    if (!this.#pending.has(pending)) return;
    const step = machine.data(bytes);
    if (step.up !== undefined) {
      this.#leave(pending);
      socket.off('data', pending.data).off('close', pending.leave);
      this.#rate.know(address);
      this.#options.up({ socket, ...step.up }, () => socket.write(Buffer.concat(step.send)));
      return;
    }
    if (step.send.length > 0) {
      socket.write(Buffer.concat(step.send));
      // Only a complete message earns more time: bytes that trickle in do not.
      this.#expect(pending);
    }
    if (step.failed === undefined) return;
    this.#leave(pending);
    socket.end(() => socket.destroy());
    this.#options.failed(step.failed, address, machine.remote?.name);
  }

  #expect(pending: Pending): void {
    const { clock, stepTimeoutMs, failed } = this.#options;
    clock.clearTimeout(pending.timer);
    pending.timer = clock.setTimeout(() => {
      this.#drop(pending);
      failed('timeout', pending.address, pending.machine.remote?.name);
    }, stepTimeoutMs);
  }

  #leave(pending: Pending): void {
    this.#options.clock.clearTimeout(pending.timer);
    this.#pending.delete(pending);
  }

  #drop(pending: Pending): void {
    this.#leave(pending);
    pending.socket.destroy();
  }
}

function refuse(socket: Socket): void {
  socket.on('error', () => {}).destroy();
}

function listenOn(server: Server, where: ListenOptions): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve);
    server.listen(where, () => {
      server.off('error', resolve);
      // Errors of single accepts (too many open files) must not end the process.
      server.on('error', () => {});
      resolve(undefined);
    });
  });
}

/** Minimum length of a cookie that is safe on a listener reachable from other machines. */
const SAFE_COOKIE = 20;

/** Warns when other machines can reach the listener and the cookie, its only protection, is easy to guess. */
export function warnOfOpenDoor(address: string | undefined, cookie: string, log: Log): void {
  if (address === undefined || address === '::1' || address.startsWith('127.') || cookie.length >= SAFE_COOKIE) return;
  log.warn('distribution.weak_cookie', { address, atLeast: SAFE_COOKIE });
}
