import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '@bloom/log';
import type { Clock } from '../clock.js';
import { CannotListen, type HandshakeFailure } from '../errors.js';
import { Acceptor, type Identity, type Secrets, type Status } from './handshake.js';

export interface ListenAddress {
  /** Default 127.0.0.1. */
  readonly address?: string;
  /** Range of ports; only a `minPort` means exactly that one, none means any. */
  readonly minPort?: number;
  readonly maxPort?: number;
}

export interface ListenerOptions {
  readonly self: () => Identity;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly stepTimeoutMs: number;
  /** Connections that have not proved to know the cookie, at once; the oldest is dropped for a new one. */
  readonly maxPending: number;
  readonly maxAcceptsPerSecond: number;
  readonly decide: (peer: Identity) => Status | undefined;
  /** A peer has proved itself. The owner drops what it had, calls `acknowledge` and takes the socket over. */
  readonly up: (socket: Socket, peer: Identity, rest: Buffer, acknowledge: () => void) => void;
  readonly failed: (why: HandshakeFailure | 'rate', address: string, peer: string | undefined) => void;
}

interface Pending {
  readonly socket: Socket;
  readonly machine: Acceptor;
  timer: unknown;
  readonly data: (bytes: Buffer) => void;
  readonly leave: () => void;
}

/** Takes connections in and shakes hands. */
export class Listener {
  private readonly pending = new Set<Pending>();
  private server: Server | undefined;
  private second = 0;
  private accepted = 0;

  constructor(private readonly options: ListenerOptions) {}

  get port(): number {
    const address = this.server?.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Whether a peer of that name is in the middle of a handshake with us. */
  isShaking(node: string): boolean {
    for (const { machine } of this.pending) if (machine.peer?.name === node) return true;
    return false;
  }

  /** Throws CannotListen when no port of the range is free. */
  async listen({ address = '127.0.0.1', minPort, maxPort }: ListenAddress): Promise<void> {
    const first = minPort ?? 0;
    const last = minPort === undefined ? 0 : (maxPort ?? minPort);
    for (let port = first; port <= last; port++) {
      const server = createServer({
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: 30_000,
        pauseOnConnect: false,
      });
      server.on('connection', (socket: Socket) => this.accept(socket));
      const error = await listenOn(server, address, port);
      if (error === undefined) {
        this.server = server;
        return;
      }
      if (error.code !== 'EADDRINUSE')
        throw new CannotListen(`cannot listen on ${address}:${port}: ${error.message}`, { cause: error });
    }
    throw new CannotListen(`no port of ${first}..${last} on ${address} is free`);
  }

  async close(): Promise<void> {
    for (const pending of this.pending) this.drop(pending);
    const { server } = this;
    if (server?.listening === true) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  private accept(socket: Socket): void {
    const address = socket.remoteAddress ?? 'unknown';
    socket.on('error', () => socket.destroy());
    if (!this.withinRate()) {
      socket.destroy();
      this.options.failed('rate', address, undefined);
      return;
    }
    const { maxPending } = this.options;
    if (this.pending.size >= maxPending) {
      const [oldest] = this.pending;
      this.drop(oldest as Pending);
    }
    const machine = new Acceptor(this.options.self(), this.options.decide, this.options.secrets);
    const pending: Pending = {
      socket,
      machine,
      timer: undefined,
      data: (bytes) => this.data(pending, bytes, address),
      leave: () => this.leave(pending),
    };
    this.pending.add(pending);
    this.expect(pending, address);
    socket.on('data', pending.data).on('close', pending.leave);
  }

  private data(pending: Pending, bytes: Buffer, address: string): void {
    const { socket, machine } = pending;
    if (!this.pending.has(pending)) return;
    const step = machine.data(bytes);
    if (step.up !== undefined) {
      this.leave(pending);
      socket.off('data', pending.data).off('close', pending.leave);
      this.options.up(socket, step.up.peer, step.up.rest, () => socket.write(Buffer.concat(step.send)));
      return;
    }
    if (step.send.length > 0) socket.write(Buffer.concat(step.send));
    if (step.failed === undefined) this.expect(pending, address);
    else {
      this.leave(pending);
      socket.end(() => socket.destroy());
      this.options.failed(step.failed, address, machine.peer?.name);
    }
  }

  private expect(pending: Pending, address: string): void {
    const { clock, stepTimeoutMs, failed } = this.options;
    clock.clearTimeout(pending.timer);
    pending.timer = clock.setTimeout(() => {
      this.drop(pending);
      failed('timeout', address, pending.machine.peer?.name);
    }, stepTimeoutMs);
  }

  private leave(pending: Pending): void {
    this.options.clock.clearTimeout(pending.timer);
    this.pending.delete(pending);
  }

  private drop(pending: Pending): void {
    this.leave(pending);
    pending.socket.destroy();
  }

  private withinRate(): boolean {
    const second = Math.floor(this.options.clock.now() / 1_000);
    if (second !== this.second) {
      this.second = second;
      this.accepted = 0;
    }
    this.accepted += 1;
    return this.accepted <= this.options.maxAcceptsPerSecond;
  }
}

function listenOn(server: Server, host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve);
    server.listen({ host, port }, () => {
      server.off('error', resolve);
      // Errors of single accepts (too many open files) must not end the process.
      server.on('error', () => {});
      resolve(undefined);
    });
  });
}

/** Characters a cookie should have when the listener can be reached from other machines. */
const SAFE_COOKIE = 20;

/** Whoever knows the cookie is let in, so one that can be guessed must not be reachable from elsewhere. */
export function warnOfOpenDoor(address: string | undefined, cookie: string, log: Log): void {
  if (address === undefined || address === '::1' || address.startsWith('127.') || cookie.length >= SAFE_COOKIE) return;
  log.warn('distribution.weak-cookie', { address, atLeast: SAFE_COOKIE });
}
