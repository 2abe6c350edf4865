import { createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { TLSSocket, type SecureContext } from 'node:tls';
import { acceptProxied, type Endpoint, type TrustedProxies } from '@bloom/net';
import { WebrtcError } from '../errors.js';
import { RelayConnections, type RelayConnectionsOptions } from './relay-connections.js';
import { SourceLimiter } from './source-limiter.js';

export interface TcpAcceptorOptions extends RelayConnectionsOptions {
  listenAddress: string;
  port: number;
  /** Leaves IPv4 to another listener on the same port when the address is `::`. */
  ipv6Only?: boolean;
  /** Returns the certificate for each new connection (TURN over TLS). Absent for plain TCP. */
  tls?: () => SecureContext;
  /** Accepts connections from these proxies only, each with a PROXY header (`JF_PROXY_PROTOCOL`). Absent: no proxy. */
  proxies?: TrustedProxies;
}

/** TLS handshakes per network: each costs the main thread a signature. Connections that send nothing cost none. */
export const TLS_HANDSHAKES = { burst: 400, perSecond: 200 } as const;

/** The relay's TCP or TLS port. */
export class TcpAcceptor {
  readonly #server: Server;
  readonly #options: TcpAcceptorOptions;
  readonly #connections: RelayConnections;
  readonly #limiter = new SourceLimiter(TLS_HANDSHAKES);
  readonly #clock: () => number;
  #closed = false;

  private constructor(server: Server, options: TcpAcceptorOptions) {
    this.#server = server;
    this.#options = options;
    this.#connections = RelayConnections.open(options);
    this.#clock = options.clock ?? (() => performance.timeOrigin + performance.now());
    server.on('connection', (socket) => this.#begin(socket));
  }

  /** Binds the port. Rejects with `WebrtcError` `NO_FREE_PORT` when it cannot be bound. */
  static async open(options: TcpAcceptorOptions): Promise<TcpAcceptor> {
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
    const ended = once(this.#server, 'close');
    this.#server.close();
    await this.#connections.close();
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
    const { tls } = this.#options;
    const connection = this.#connections.add(tcp, { client, secure: tls !== undefined });
    if (connection === undefined) return;
    if (tls === undefined) {
      this.#connections.serve(connection);
      return;
    }
    tcp.once('readable', () => {
      if (tcp.readableLength === 0 || !this.#limiter.take(client.address, this.#clock())) {
        tcp.destroy();
        return;
      }
      connection.socket = new TLSSocket(tcp, { isServer: true, secureContext: tls() });
      connection.socket.on('error', () => tcp.destroy()).on('close', () => tcp.destroy());
      this.#connections.serve(connection);
    });
  }
}
