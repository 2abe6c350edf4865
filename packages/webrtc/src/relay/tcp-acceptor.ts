import { createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { TLSSocket, type SecureContext } from 'node:tls';
import { acceptProxied, ConnectionShares, type Endpoint, type TrustedProxies } from '@bloom/net';
import { WebrtcError } from '../errors.js';
import { Attribute, MessageClass, Method, StunError } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { Nonces } from './nonces.js';
import { challengeReply } from './replies.js';
import type { RelayRoute, RelayStream } from './relay-stream.js';
import { SourceLimiter } from './source-limiter.js';
import { StreamFrames } from './stream-frames.js';

export interface TcpAcceptorOptions {
  listenAddress: string;
  port: number;
  /** Leaves IPv4 to another listener on the same port when the address is `::`. */
  ipv6Only?: boolean;
  /** Nonce secret of the media ports, so that they accept challenges issued here. */
  nonceSecret: Buffer;
  /** Returns the route of a relay user; undefined if the user is unknown. */
  route(username: string): RelayRoute | undefined;
  /** Returns the certificate for each new connection (TURN over TLS). Absent for plain TCP. */
  tls?: () => SecureContext;
  clock?: () => number;
  /** Accepts connections from these proxies only, each with a PROXY header (`JF_PROXY_PROTOCOL`). Absent: no proxy. */
  proxies?: TrustedProxies;
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

/** TLS handshakes per network: each costs the main thread a signature. Connections that send nothing cost none. */
export const TLS_HANDSHAKES = { burst: 400, perSecond: 200 } as const;

interface Connection {
  socket: Socket;
  client: Endpoint;
  since: number;
  stream: RelayStream | undefined;
}

/**
 * The relay's TCP or TLS port (RFC 8656 section 3.1). It splits the stream into frames and answers the first Allocate
 * with a challenge. Once a client names its user, all its frames go to that user's route.
 */
export class TcpAcceptor {
  readonly #server: Server;
  readonly #options: TcpAcceptorOptions;
  readonly #connections = new Set<Connection>();
  /** Clients allocate within two round trips, so idle connections without an allocation cannot lock others out. */
  readonly #shares: ConnectionShares<Connection>;
  readonly #nonces: Nonces;
  readonly #limiter = new SourceLimiter(TLS_HANDSHAKES);
  readonly #clock: () => number;
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  private constructor(server: Server, options: TcpAcceptorOptions) {
    this.#server = server;
    this.#options = options;
    const max = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    const maxPerNetwork = options.maxPerNetwork ?? DEFAULT_MAX_PER_NETWORK;
    this.#shares = new ConnectionShares({
      max,
      maxPerNetwork,
      kept: { max, maxPerNetwork },
      graceMs: options.graceMs ?? GRACE_MS,
      now: () => this.#clock(),
      drop: (connection) => {
        this.#connections.delete(connection);
        connection.socket.destroy();
      },
    });
    this.#nonces = new Nonces(options.nonceSecret);
    this.#clock = options.clock ?? (() => performance.timeOrigin + performance.now());
    server.on('connection', (socket) => this.#begin(socket));
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#timer.unref();
  }

  /** Binds the port. Rejects with `WebrtcError` `NO_FREE_PORT` when it cannot be bound. */
  static async listen(options: TcpAcceptorOptions): Promise<TcpAcceptor> {
    const server = createServer({ noDelay: true, keepAlive: true });
    try {
      const listening = once(server, 'listening');
      const { port, listenAddress: host, ipv6Only = false } = options;
      server.listen({ port, host, ipv6Only });
      await listening;
    } catch (error) {
      const kind = options.tls === undefined ? 'TCP' : 'TLS';
      const variables = `JF_WEBRTC_TURN_LISTEN_IP, JF_WEBRTC_TURN_${kind}_PORT`;
      const where = `${options.listenAddress}:${options.port} (${variables})`;
      const { message } = error as Error;
      throw new WebrtcError('NO_FREE_PORT', `the ${kind} relay port ${where} cannot be bound: ${message}`, {
        cause: error,
      });
    }
    return new TcpAcceptor(server, options);
  }

  get port(): number {
    const address = this.#server.address();
    return address !== null && typeof address === 'object' ? address.port : 0;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Closes every connection. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    const ended = once(this.#server, 'close');
    this.#server.close();
    for (const { socket } of this.#connections) socket.destroy();
    await ended;
  }

  #begin(socket: Socket): void {
    const { proxies: trusted } = this.#options;
    const { remoteAddress: address, remotePort: port } = socket;
    if (address === undefined || port === undefined) socket.destroy();
    else if (trusted === undefined) this.#accept(socket, { address, port });
    else {
      // The HTTP port has the same setting and logs the proxy's mistakes.
      acceptProxied(socket, {
        trusted,
        accept: (_, client) => this.#accept(socket, client),
        onRefused: () => undefined,
      });
    }
  }

  #accept(tcp: Socket, client: Endpoint): void {
    const connection: Connection = { socket: tcp, client, since: this.#clock(), stream: undefined };
    if (!this.#shares.add(connection, client.address)) {
      tcp.destroy();
      return;
    }
    this.#connections.add(connection);
    tcp.on('error', () => undefined);
    tcp.on('close', () => {
      this.#shares.delete(connection);
      this.#connections.delete(connection);
      connection.stream?.closed();
    });
    const { tls } = this.#options;
    if (tls === undefined) this.#serve(connection);
    else {
      tcp.once('readable', () => {
        if (tcp.readableLength === 0 || !this.#limiter.take(client.address, this.#clock())) {
          tcp.destroy();
          return;
        }
        connection.socket = new TLSSocket(tcp, { isServer: true, secureContext: tls() });
        connection.socket.on('error', () => tcp.destroy()).on('close', () => tcp.destroy());
        this.#serve(connection);
      });
    }
  }

  #serve(connection: Connection): void {
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

  /** Handles a frame from a client whose user is still unknown. */
  #route(connection: Connection, frame: Buffer): void {
    const { socket, client } = connection;
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
  #challenge(socket: Socket, message: StunMessage, { address, port }: Endpoint): void {
    write(socket, challengeReply(message, StunError.unauthorized, this.#nonces.mint(address, port, this.#clock())));
  }

  #sweep(): void {
    const limit = this.#clock() - UNROUTED_MS;
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
