import type { Socket } from 'node:net';
import { ConnectionShares, type Endpoint } from '@bloom/net';
import { awakeClock, type Clock, Timer } from '@bloom/time';
import { Attribute, MessageClass, Method, StunError } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { Nonces } from './nonces.js';
import { challengeReply } from './replies.js';
import type { RelayRoute, RelayStream } from './relay-stream.js';
import { StreamFrames } from './stream-frames.js';

export interface RelayConnectionsOptions {
  /** Nonce secret of the media ports, so that they accept challenges issued here. */
  nonceSecret: Buffer;
  /** Returns the route of a relay user; undefined if the user is unknown. */
  route(username: string): RelayRoute | undefined;
  /** Dates nonces, in ms since the epoch as on the media ports. */
  clock?: () => number;
  /** Measures the age of connections. */
  awake?: Clock;
  /** Bound on connections without an allocation, and separately on those with one. */
  maxConnections?: number;
  maxPerNetwork?: number;
  graceMs?: number;
}

/** Time limit for a connection to name a known user. */
const UNROUTED_MS = 10_000;
const SWEEP_MS = 2_000;
/** Bound on a connection's unsent bytes. Media frames beyond it are dropped: they would arrive too late for a call. */
const MAX_BACKLOG_BYTES = 512 * 1024;
const DEFAULT_MAX_CONNECTIONS = 4_096;
/**
 * Bound per network (an IPv4 address, an IPv6 /64): an office behind one address fits, a stranger cannot fill the port.
 */
const DEFAULT_MAX_PER_NETWORK = 2_048;
/**
 * Age from which a newer connection may replace one without an allocation: honest clients need two round trips. Even a
 * flood of 1,024 connections per second from the same address locks none of them out.
 */
const GRACE_MS = 2_000;

export interface RelayConnection {
  /** Replaced by the TLS socket once the handshake begins. */
  socket: Socket;
  readonly client: Endpoint;
  readonly secure: boolean;
  readonly since: number;
  stream: RelayStream | undefined;
}

/**
 * The connections of the relay's clients over TCP or TLS (RFC 8656 section 3.1). It splits the streams into frames and
 * answers the first Allocate with a challenge. Once a client names its user, all its frames go to that user's route.
 */
export class RelayConnections {
  readonly #options: RelayConnectionsOptions;
  readonly #connections = new Set<RelayConnection>();
  /** Clients allocate within two round trips, so idle connections without an allocation cannot lock others out. */
  readonly #shares: ConnectionShares<RelayConnection>;
  readonly #nonces: Nonces;
  readonly #clock: () => number;
  readonly #awake: Clock;
  readonly #timer: Timer;
  #closed = false;

  private constructor(options: RelayConnectionsOptions) {
    this.#options = options;
    const max = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    const maxPerNetwork = options.maxPerNetwork ?? DEFAULT_MAX_PER_NETWORK;
    this.#shares = new ConnectionShares({
      max,
      maxPerNetwork,
      kept: { max, maxPerNetwork },
      graceMs: options.graceMs ?? GRACE_MS,
      now: () => this.#awake.now(),
      drop: (connection) => {
        this.#connections.delete(connection);
        connection.socket.destroy();
      },
    });
    this.#nonces = new Nonces(options.nonceSecret);
    this.#clock = options.clock ?? (() => performance.timeOrigin + performance.now());
    this.#awake = options.awake ?? awakeClock;
    this.#timer = new Timer(this.#awake);
    this.#timer.repeat(SWEEP_MS, () => this.#sweep());
  }

  static open(options: RelayConnectionsOptions): RelayConnections {
    return new RelayConnections(options);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Counts a new connection. Returns undefined, and destroys the socket, where its network has no place left. */
  add(socket: Socket, { client, secure }: { client: Endpoint; secure: boolean }): RelayConnection | undefined {
    const connection: RelayConnection = { socket, client, secure, since: this.#awake.now(), stream: undefined };
    if (this.#closed || !this.#shares.add(connection, client.address)) {
      socket.destroy();
      return undefined;
    }
    this.#connections.add(connection);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#shares.delete(connection);
      this.#connections.delete(connection);
      connection.stream?.closed();
    });
    return connection;
  }

  /** Reads from the connection's socket. */
  serve(connection: RelayConnection): void {
    const { socket } = connection;
    const frames = new StreamFrames();
    socket.on('data', (chunk) => {
      for (const frame of frames.push(chunk)) {
        if (socket.destroyed) return;
        // Decryption happens in place, and frames of one chunk share its memory.
        if (connection.stream !== undefined) connection.stream.receive(frame);
        else this.#route(connection, frame);
      }
      if (frames.broken) socket.destroy();
    });
  }

  /** Closes every connection. Idempotent. */
  close(): Promise<void> {
    this.#closed = true;
    this.#timer.stop();
    for (const { socket } of this.#connections) socket.destroy();
    return Promise.resolve();
  }

  /** Handles a frame from a client whose user is still unknown. */
  #route(connection: RelayConnection, frame: Buffer): void {
    const { socket, client, secure } = connection;
    const message = StunMessage.parse(frame);
    if (message?.method !== Method.allocate || message.messageClass !== MessageClass.request) {
      socket.destroy();
      return;
    }
    const username = message.text(Attribute.username);
    if (username === undefined) {
      this.#challenge(socket, message, client);
      return;
    }
    const route = this.#options.route(username);
    if (route === undefined) {
      socket.destroy();
      return;
    }
    connection.stream = route.attachStream({
      ...client,
      secure,
      send: (bytes) => write(socket, bytes),
      // A user name alone proves nothing: other participants know it.
      allocated: () => {
        if (!this.#shares.keep(connection)) socket.destroySoon();
      },
      // Flushes pending writes, then closes even if the client does not.
      close: () => socket.destroySoon(),
    });
    connection.stream.receive(frame);
  }

  /** Sends a challenge. TCP proves the source address, so the reply cannot be reflected and needs no limit. */
  #challenge(socket: Socket, message: StunMessage, client: Endpoint): void {
    write(socket, challengeReply(message, StunError.unauthorized, this.#nonces.mint(client, this.#clock())));
  }

  #sweep(): void {
    const limit = this.#awake.now() - UNROUTED_MS;
    for (const { socket, since, stream } of this.#connections) {
      if (stream === undefined && since <= limit) socket.destroy();
    }
  }
}

function write(socket: Socket, frame: Buffer): boolean {
  if (!socket.writable || socket.writableLength > MAX_BACKLOG_BYTES) return false;
  socket.write(frame);
  return true;
}
