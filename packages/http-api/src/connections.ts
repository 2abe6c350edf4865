import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '@bloom/log';
import { ConnectionShares, type Endpoint, networkOf, TrustedProxies } from '@bloom/net';
import { type Clock, LogThrottle, systemClock } from '@bloom/time';

/** Limit on all connections, which leaves descriptors for media. */
const MAX_CONNECTIONS = 16_384;
/** Above this share of the limit, connections that only wait for a next request are closed: their clients reconnect. */
const CROWDED = 0.9;
/** Time limit for a request's header, and then for its body, while connections are that scarce. */
export const CROWDED_TIMEOUT_MS = 5_000;
const SWEEP_PAUSE_MS = 1_000;
/** Limits on connections without a first request, which any stranger can open. */
const MAX_UNSERVED = 2_048;
export const MAX_UNSERVED_PER_NETWORK = 1_024;
/**
 * Age at which such a connection may be closed for a newer one: clients send the request with the handshake or one
 * round trip later.
 */
export const UNSERVED_GRACE_MS = 1_000;
/** Limits on idle connections that have shown no token: the oldest are closed for newer ones. */
const MAX_IDLE_STRANGERS = 2_048;
export const MAX_IDLE_STRANGERS_PER_NETWORK = 1_024;
const IDLE_GRACE_MS = 1_000;
/** Limits on concurrent requests that need no token, such as those for public files; further ones are refused. */
const MAX_STRANGERS_REQUESTS = 6_144;
export const MAX_STRANGERS_REQUESTS_PER_NETWORK = 4_096;
/**
 * Limits on connections that are never closed for newer ones because they have shown a token. Any above the limit are
 * treated as strangers'.
 */
const MAX_KNOWN = 8_192;
const MAX_KNOWN_PER_NETWORK = 4_096;
/** Requests on one connection without a complete response: Node parses everything that one read of 64 KiB contains. */
export const MAX_PIPELINED = 32;

export interface ConnectionsOptions {
  /** Connections of all kinds. */
  limit?: number | undefined;
  clock?: Clock | undefined;
  trusted?: TrustedProxies | undefined;
}

/** The connections of a listener, from accept to close; the server itself forgets those that are upgraded. */
export class Connections {
  readonly #log: Log;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #crowdedAt: number;
  #sweptMs = Number.NEGATIVE_INFINITY;
  readonly #throttle = new LogThrottle();
  readonly #open = new Set<Socket>();
  /** Keyed by remote address and port: with TLS the socket of a request differs from that of its connection. */
  readonly #unserved = new Map<string, Socket>();
  readonly #trusted: TrustedProxies;
  /** Client endpoints given by a PROXY header, by remote address and port. */
  readonly #proxied = new Map<string, Endpoint>();
  readonly #unservedShares: ConnectionShares<string>;
  readonly #idleStrangers: ConnectionShares<Socket>;
  readonly #strangersRequests: ConnectionShares<IncomingMessage>;
  readonly #known: ConnectionShares<Socket>;
  readonly #isKnown = new WeakSet<Duplex>();
  readonly #served = new WeakSet<Duplex>();
  readonly #answers = new WeakMap<Duplex, number>();
  /** The last request of each connection that is answering one. */
  readonly #requests = new Map<Socket, IncomingMessage>();
  readonly #whenAnswered = new WeakMap<Duplex, () => void>();
  /** Connections waiting for a next request, with the bytes they had received when the wait started. */
  readonly #idle = new Map<Socket, number>();
  /** When a sweep first found a connection's request incomplete. */
  readonly #partialSinceMs = new WeakMap<Socket, number>();

  constructor(server: Server, log: Log, options: ConnectionsOptions = {}) {
    const { limit = MAX_CONNECTIONS, clock = systemClock, trusted = new TrustedProxies() } = options;
    this.#log = log;
    this.#server = server;
    this.#clock = clock;
    this.#trusted = trusted;
    const now = () => clock.now();
    this.#unservedShares = new ConnectionShares({
      max: MAX_UNSERVED,
      maxPerNetwork: MAX_UNSERVED_PER_NETWORK,
      graceMs: UNSERVED_GRACE_MS,
      now,
      drop: (key, limited) => this.#dropUnserved(key, limited),
    });
    this.#idleStrangers = new ConnectionShares({
      max: MAX_IDLE_STRANGERS,
      maxPerNetwork: MAX_IDLE_STRANGERS_PER_NETWORK,
      graceMs: IDLE_GRACE_MS,
      now,
      // Nothing is lost: the client reconnects.
      drop: (socket) => socket.destroy(),
    });
    this.#strangersRequests = new ConnectionShares({
      max: MAX_STRANGERS_REQUESTS,
      maxPerNetwork: MAX_STRANGERS_REQUESTS_PER_NETWORK,
      graceMs: Number.POSITIVE_INFINITY,
      drop: () => undefined,
    });
    this.#known = new ConnectionShares({
      max: MAX_KNOWN,
      maxPerNetwork: MAX_KNOWN_PER_NETWORK,
      graceMs: Number.POSITIVE_INFINITY,
      drop: () => undefined,
    });
    this.#crowdedAt = limit * CROWDED;
    server.maxConnections = limit;
    // Node's version ends connections whose last response is written but not yet delivered. Closing the server calls it
    // as well.
    server.closeIdleConnections = () => this.#endIdle();
    server.on('drop', () => {
      this.#refused('any', 'connections', limit);
      this.#makeRoom();
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      this.served(socket);
      response.once('close', () => this.#strangersRequests.delete(request));
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

  /** Calls `run` once every response that has started on the socket is complete. */
  whenAnswered(socket: Duplex, run: () => void): void {
    if (this.isAnswering(socket)) this.#whenAnswered.set(socket, run);
    else run();
  }

  /** Records that a request has arrived on the connection. */
  served(socket: Socket): void {
    this.#idle.delete(socket);
    this.#idleStrangers.delete(socket);
    this.#partialSinceMs.delete(socket);
    if (this.#served.has(socket)) return;
    this.#served.add(socket);
    this.#forget(keyOf(socket));
    socket.once('close', () => {
      this.#idle.delete(socket);
      this.#idleStrangers.delete(socket);
      this.#requests.delete(socket);
    });
  }

  /** Stops counting the connection among those that wait for a request. Returns its client's endpoint. */
  handOver(socket: Socket): Endpoint {
    const key = keyOf(socket);
    this.#forget(key);

    return this.#proxied.get(key) ?? { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 };
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Counts a new connection. `proxied`: the client named by a PROXY header. */
  add(socket: Socket, proxied?: Endpoint): void {
    const key = keyOf(socket);
    if (proxied !== undefined) this.#proxied.set(key, proxied);
    // A request that is parsed again reports its connection again.
    if (this.#open.has(socket)) return;
    this.#open.add(socket);
    if (this.#open.size > this.#crowdedAt) this.#makeRoom();
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#proxied.delete(key);
      this.#forget(key);
    });
    const address = this.#connectedFrom(socket);
    // A proxy connects when it has a request, and the connections of all its clients come from one address.
    if (this.#trusted.has(address)) return;
    this.#unserved.set(key, socket);
    if (this.#unservedShares.add(key, address)) return;
    this.#refused(address, 'connections without a request', MAX_UNSERVED_PER_NETWORK);
    this.#unserved.delete(key);
    socket.destroy();
  }

  /** Returns the address of a request's client, which a trusted proxy may have passed on. */
  clientOf({ socket, headers }: IncomingMessage): string {
    const forwarded = headers['x-forwarded-for'];

    return this.#trusted.clientOf(
      this.#connectedFrom(socket),
      typeof forwarded === 'string' ? forwarded : forwarded?.join(','),
    );
  }

  /** Records that the request has shown a valid token, so that its connection is not closed in favour of strangers'. */
  authenticated({ socket }: IncomingMessage): void {
    const address = this.#connectedFrom(socket);
    // The next request on a proxy's connection belongs to another client.
    if (this.#trusted.has(address) || this.#isKnown.has(socket) || !this.#known.add(socket, address)) return;
    this.#isKnown.add(socket);
    socket.once('close', () => this.#known.delete(socket));
  }

  /** Counts a request that needs no token until it is answered. Returns false if there are too many. */
  admitStranger(request: IncomingMessage): boolean {
    const address = this.clientOf(request);
    if (this.#isKnown.has(request.socket) || this.#strangersRequests.add(request, address)) return true;
    this.#refused(address, 'requests without a token', MAX_STRANGERS_REQUESTS_PER_NETWORK);

    return false;
  }

  #connectedFrom(socket: Socket): string {
    return this.#proxied.get(keyOf(socket))?.address ?? socket.remoteAddress ?? '';
  }

  #dropUnserved(key: string, limited: 'network' | 'total'): void {
    const socket = this.#unserved.get(key);
    this.#unserved.delete(key);
    if (socket === undefined) return;
    const limit = limited === 'total' ? MAX_UNSERVED : MAX_UNSERVED_PER_NETWORK;
    this.#refused(this.#connectedFrom(socket), 'connections without a request', limit);
    socket.destroy();
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
      // Bytes received since then mean that a request has started.
      if (socket.bytesRead === received) socket.destroy();
    }
  }

  #forget(key: string): void {
    this.#unserved.delete(key);
    this.#unservedShares.delete(key);
  }

  #answered(socket: Socket): void {
    const left = (this.#answers.get(socket) ?? 1) - 1;
    this.#answers.set(socket, left);
    if (left > 0) return;
    this.#requests.delete(socket);
    this.#partialSinceMs.delete(socket);
    if (!socket.destroyed) this.#waits(socket);
    const run = this.#whenAnswered.get(socket);
    this.#whenAnswered.delete(socket);
    run?.();
  }

  #waits(socket: Socket): void {
    this.#idle.set(socket, socket.bytesRead);
    const address = this.#connectedFrom(socket);
    if (this.#isKnown.has(socket) || this.#trusted.has(address) || this.#idleStrangers.add(socket, address)) return;
    this.#refused(address, 'idle connections without a token', MAX_IDLE_STRANGERS_PER_NETWORK);
    socket.destroy();
  }

  #refused(address: string, what: string, limit: number): void {
    if (!this.#throttle.allows(networkOf(address))) return;
    this.#log.warn('http.connection_refused', { address, what, limit });
  }
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
