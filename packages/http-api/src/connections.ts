import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '@bloom/log';
import { ConnectionShares, networkOf } from '@bloom/net';
import { type Clock, LogThrottle, systemClock } from '@bloom/time';

/** Limit of all connections, which leaves descriptors for media. */
const MAX_CONNECTIONS = 16_384;
/** Above this share of them, connections that only wait for a next request are closed: their clients connect again. */
const CROWDED = 0.9;
/** Time for the header of a request, and then for its body, while connections are that scarce. */
export const CROWDED_TIMEOUT_MS = 5_000;
const SWEEP_PAUSE_MS = 1_000;
/** Limit of connections without a first request, which any stranger can open. */
const MAX_UNSERVED = 2_048;
export const MAX_UNSERVED_PER_NETWORK = 256;
/** Requests of one connection without a complete response: Node parses all that one read of 64 KiB brings. */
export const MAX_PIPELINED = 32;

export interface ConnectionsOptions {
  /** Connections of all kinds. */
  limit?: number | undefined;
  clock?: Clock;
}

/** The connections of a listener, from accept to close: the server itself forgets those that are upgraded. */
export class Connections {
  readonly #log: Log;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #crowdedAt: number;
  #sweptMs = Number.NEGATIVE_INFINITY;
  readonly #throttle = new LogThrottle();
  readonly #open = new Set<Socket>();
  /** Keyed by remote address and port: with TLS the socket of a request is not that of its connection. */
  readonly #unserved = new Map<string, Socket>();
  readonly #shares = new ConnectionShares<string>({
    max: MAX_UNSERVED,
    maxPerNetwork: MAX_UNSERVED_PER_NETWORK,
    drop: (key, limit) => this.#drop(key, limit),
  });
  readonly #served = new WeakSet<Duplex>();
  readonly #answers = new WeakMap<Duplex, number>();
  /** The last request of each connection on which one is being answered. */
  readonly #requests = new Map<Socket, IncomingMessage>();
  readonly #whenAnswered = new WeakMap<Duplex, () => void>();
  /** Connections that wait for a next request, with the bytes that they had received when they began to. */
  readonly #idle = new Map<Socket, number>();
  /** When a sweep first found the request of a connection incomplete. */
  readonly #partialSinceMs = new WeakMap<Socket, number>();

  constructor(server: Server, log: Log, { limit = MAX_CONNECTIONS, clock = systemClock }: ConnectionsOptions = {}) {
    this.#log = log;
    this.#server = server;
    this.#clock = clock;
    this.#crowdedAt = limit * CROWDED;
    server.maxConnections = limit;
    // That of Node ends connections whose last response is written but still on its way. Closing the server calls it as well.
    server.closeIdleConnections = () => this.#endIdle();
    server.on('drop', () => {
      this.#refused('any', 'connections', limit);
      this.#makeRoom();
    });
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      this.served(socket);
      this.#requests.set(socket, request);
      const answers = (this.#answers.get(socket) ?? 0) + 1;
      this.#answers.set(socket, answers);
      response.once('close', () => this.#answered(socket));
      if (answers <= MAX_PIPELINED || socket.destroyed) return;
      this.#refused(socket.remoteAddress ?? '', 'requests of one connection without an answer', MAX_PIPELINED);
      socket.destroy();
    });
  }

  /** Returns whether a request on the socket is being answered. */
  isAnswering(socket: Duplex): boolean {
    return (this.#answers.get(socket) ?? 0) > 0;
  }

  /** Calls `run` once every response that has begun on the socket is complete. */
  whenAnswered(socket: Duplex, run: () => void): void {
    if (this.isAnswering(socket)) this.#whenAnswered.set(socket, run);
    else run();
  }

  /** Records that a request of the connection has arrived. */
  served(socket: Socket): void {
    this.#idle.delete(socket);
    this.#partialSinceMs.delete(socket);
    if (this.#served.has(socket)) return;
    this.#served.add(socket);
    this.#forget(keyOf(socket));
    socket.once('close', () => {
      this.#idle.delete(socket);
      this.#requests.delete(socket);
    });
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #add(socket: Socket): void {
    // A request that is parsed once more reports its connection again.
    if (this.#open.has(socket)) return;
    const key = keyOf(socket);
    this.#open.add(socket);
    if (this.#open.size > this.#crowdedAt) this.#makeRoom();
    this.#shares.add(key, socket.remoteAddress ?? '');
    this.#unserved.set(key, socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#forget(key);
    });
  }

  #drop(key: string, limit: 'network' | 'total'): void {
    const socket = this.#unserved.get(key);
    if (limit === 'total') this.#refused('any', 'connections without a request', MAX_UNSERVED);
    else {
      const { remoteAddress = '' } = socket ?? {};
      this.#refused(remoteAddress, 'connections of one network without a request', MAX_UNSERVED_PER_NETWORK);
    }
    this.#unserved.delete(key);
    socket?.destroy();
  }

  #makeRoom(): void {
    const now = this.#clock.now();
    if (now - this.#sweptMs < SWEEP_PAUSE_MS) return;
    this.#sweptMs = now;
    this.#server.closeIdleConnections();
    for (const [socket, received] of this.#idle) if (socket.bytesRead !== received) this.#hurry(socket, now);
    for (const [socket, { complete }] of this.#requests) if (!complete) this.#hurry(socket, now);
  }

  /** Closes a connection whose request has been incomplete for too long. */
  #hurry(socket: Socket, now: number): void {
    const since = this.#partialSinceMs.get(socket);
    if (since === undefined) this.#partialSinceMs.set(socket, now);
    else if (now - since >= CROWDED_TIMEOUT_MS) socket.destroy();
  }

  #endIdle(): void {
    for (const [socket, received] of this.#idle) {
      // More than then is the beginning of a request.
      if (socket.bytesRead === received) socket.destroy();
    }
  }

  #forget(key: string): void {
    this.#unserved.delete(key);
    this.#shares.delete(key);
  }

  #answered(socket: Socket): void {
    const left = (this.#answers.get(socket) ?? 1) - 1;
    this.#answers.set(socket, left);
    if (left > 0) return;
    this.#requests.delete(socket);
    this.#partialSinceMs.delete(socket);
    if (!socket.destroyed) this.#idle.set(socket, socket.bytesRead);
    const run = this.#whenAnswered.get(socket);
    this.#whenAnswered.delete(socket);
    run?.();
  }

  #refused(address: string, what: string, limit: number): void {
    if (!this.#throttle.allows(networkOf(address))) return;
    this.#log.warn('http.connection_refused', { address, what, limit });
  }
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
