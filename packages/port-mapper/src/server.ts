import { createServer, isIP, type Server, type Socket } from 'node:net';
import type { Log } from '@bloom/log';
import { names } from './client.js';
import { Clients } from './clients.js';
import { type Answer, Conversation } from './conversation.js';
import { PortMapperError } from './errors.js';
import { Registry } from './registry.js';

export interface ServerOptions {
  /** 0 = any free port. */
  readonly port: number;
  /** Addresses in addition to loopback, which is always served because registration is local. Default none. */
  readonly addresses?: readonly string[];
  /** Allows `epmd -stop NAME`, and `epmd -kill` while nodes are registered. Default false. */
  readonly relaxed?: boolean;
  /** Time after which a connection that registered nothing is closed. Default 60 s. */
  readonly idleMs?: number;
  /** Maximum number of simultaneous connections. Default 1,024. */
  readonly maxConnections?: number;
  readonly log: Log;
}

const DEFAULT_MAX_CONNECTIONS = 1_024;
/** Time that a connection has to close its side. */
const CLOSE_WITHIN_MS = 1_000;

/** A port mapper with its sockets. */
export class PortMapperServer {
  readonly #options: ServerOptions;
  /** Resolves when the server has stopped, through `close()` or at a client's request. */
  readonly closed: Promise<void>;
  readonly #registry: Registry;
  readonly #listeners: Server[] = [];
  readonly #clients: Clients;
  #connections = 0;
  #boundPort = 0;
  #resolveClosed: () => void = () => {};
  #closing: Promise<void> | undefined;

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#clients = new Clients(options.maxConnections ?? DEFAULT_MAX_CONNECTIONS);
    this.#registry = new Registry(this.#clients.maxNames, Math.random);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  /**
   * Opens the listeners.
   * @throws PortMapperError PORT_MAPPER_RUNNING when a port mapper already has the port, PORT_TAKEN when another
   *   program has it; otherwise the error of the system
   */
  static async open(options: ServerOptions): Promise<PortMapperServer> {
    const server = new PortMapperServer(options);
    try {
      await server.#listen();
    } catch (error) {
      await server.close();
      if (codeOf(error) !== 'EADDRINUSE') throw error;
      const running = await names({ host: '127.0.0.1', port: options.port, timeoutMs: 2_000 }).catch(() => undefined);
      throw portInUse(options.port, running !== undefined, error);
    }
    return server;
  }

  get port(): number {
    return this.#boundPort;
  }

  /** Number of registered nodes. */
  get size(): number {
    return this.#registry.size;
  }

  /** Stops listening and drops every connection. */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    this.#clients.dropAll();
    await Promise.all(this.#listeners.map((listener) => new Promise<void>((done) => listener.close(() => done()))));
    this.#resolveClosed();
  }

  async #listen(): Promise<void> {
    for (const address of bindAddresses(this.#options.addresses ?? [])) {
      const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
      try {
        const port = this.#boundPort === 0 ? this.#options.port : this.#boundPort;
        await new Promise<void>((resolve, reject) => {
          listener.once('error', reject);
          listener.listen({ host: address, port, ipv6Only: isIP(address) === 6 }, () => {
            listener.off('error', reject);
            resolve();
          });
        });
      } catch (error) {
        // A machine without IPv6 still gets a mapper.
        if (address === '::1' && ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(codeOf(error))) continue;
        throw error;
      }
      listener.on('error', (error) => this.#options.log.error('port_mapper.accept_failed', { reason: error.message }));
      this.#listeners.push(listener);
      this.#boundPort = (listener.address() as { port: number }).port;
    }
  }

  #accept(socket: Socket): void {
    const local = isLocal(socket);
    this.#connections += 1;
    const connection = this.#connections;
    const conversation = new Conversation(
      this.#registry,
      { connection, local, port: socket.localPort ?? this.#boundPort },
      this.#options.relaxed ?? false,
    );
    socket.on('error', () => socket.destroy());
    const client = {
      address: local ? undefined : (socket.remoteAddress ?? ''),
      drop: () => void socket.destroy(),
    };
    if (!this.#clients.add(connection, client)) {
      socket.destroy();
      return;
    }
    socket.setTimeout(this.#options.idleMs ?? 60_000, () => {
      if (!conversation.registered) socket.destroy();
    });
    socket.on('data', (bytes) => {
      this.#perform(socket, connection, conversation.data(bytes));
      if (conversation.registered) this.#clients.keep(connection);
    });
    socket.on('end', () => this.#perform(socket, connection, conversation.end()));
    socket.on('close', () => {
      conversation.end();
      this.#clients.remove(connection);
    });
  }

  #perform(socket: Socket, connection: number, answer: Answer): void {
    if (answer.reply !== undefined) socket.write(answer.reply);
    if (answer.drop !== undefined) this.#clients.drop(answer.drop);
    if (!answer.close) return;
    this.#clients.finish(connection);
    // OTP's client waits indefinitely for our end of the connection, and a client that does not close its own end must
    // not keep the socket.
    socket.end(() => {
      if (answer.exit === true) void this.close();
    });
    const timer = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS);
    socket.once('close', () => clearTimeout(timer));
  }
}

function bindAddresses(wanted: readonly string[]): string[] {
  const addresses = new Set(wanted);
  if (!addresses.has('0.0.0.0')) addresses.add('127.0.0.1');
  if (!addresses.has('::')) addresses.add('::1');
  // A wildcard covers the single addresses of its family.
  return [...addresses].filter((address) =>
    isIP(address) === 6 ? address === '::' || !addresses.has('::') : address === '0.0.0.0' || !addresses.has('0.0.0.0'),
  );
}

function isLocal(socket: Socket): boolean {
  const remote = plainAddress(socket.remoteAddress ?? '');
  return (
    remote === '::1' ||
    remote.startsWith('127.') ||
    (remote !== '' && remote === plainAddress(socket.localAddress ?? ''))
  );
}

function plainAddress(address: string): string {
  return address.toLowerCase().startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function portInUse(port: number, byMapper: boolean, cause: unknown): PortMapperError {
  return byMapper
    ? new PortMapperError('PORT_MAPPER_RUNNING', `a port mapper is already running on port ${port}`)
    : new PortMapperError('PORT_TAKEN', `port ${port} is taken by a program that is not a port mapper`, { cause });
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | undefined)?.code);
}
