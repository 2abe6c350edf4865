import type { Socket as UdpSocket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import type { AddressInfo, Server } from 'node:net';
import { createServer, isIP } from 'node:net';
import { type Clock, awakeClock } from '@bloom/time';
import type { SipMessage } from '../message.js';
import { parseMessage, writeMessage } from '../message.js';
import type { Target, TransportName } from './target.js';
import { TcpConnections } from './tcp-connections.js';

export interface SipTransportOptions {
  /** IP address to listen on and advertise. */
  address: string;
  /** Where to bind if that address is not local; defaults to `address`. */
  bindAddress?: string;
  /** Port for UDP and TCP; 0 picks one that is free for both. */
  port?: number;
  onMessage: (message: SipMessage, source: Target) => void;
  onFailure: (target: Target) => void;
  clock?: Clock;
}

/** Attempts to find a port that is free in both transports. */
const MAX_PORT_TRIES = 20;

/** The sockets of a phone: UDP and TCP on one port. Carries messages without interpreting them. */
export class SipTransport {
  readonly #options: SipTransportOptions;
  readonly #udp: UdpSocket;
  readonly #server: Server;
  readonly #tcp: TcpConnections;
  readonly port: number;
  #closed = false;

  private constructor(options: SipTransportOptions, sockets: { udp: UdpSocket; server: Server; port: number }) {
    this.#options = options;
    this.#udp = sockets.udp;
    this.#server = sockets.server;
    this.port = sockets.port;
    const bind = options.bindAddress ?? options.address;
    this.#tcp = new TcpConnections({
      localAddress: bind === '0.0.0.0' || bind === '::' ? undefined : bind,
      onMessage: options.onMessage,
      onFailure: options.onFailure,
      clock: options.clock ?? awakeClock,
    });
    this.#server.on('connection', (socket) => this.#tcp.accept(socket));
    this.#server.on('error', () => {});
    // An ICMP error for an earlier datagram; the transaction times out by itself.
    this.#udp.on('error', () => {});
    this.#udp.on('message', (data, from) =>
      this.#receive(data, { transport: 'UDP', host: from.address, port: from.port }),
    );
  }

  /** @throws the system's error when the address is not local or the port is taken. */
  static async open(options: SipTransportOptions): Promise<SipTransport> {
    const bind = options.bindAddress ?? options.address;
    for (let attempt = 1; ; attempt += 1) {
      const udp = createSocket(isIP(bind) === 6 ? 'udp6' : 'udp4');
      const server = createServer();
      try {
        await new Promise<void>((done, failed) => {
          udp.once('error', failed);
          udp.bind(options.port ?? 0, bind, done);
        });
        const { port } = udp.address();
        await new Promise<void>((done, failed) => {
          server.once('error', failed);
          server.listen(port, bind, done);
        });
        udp.removeAllListeners('error');
        server.removeAllListeners('error');
        return new SipTransport(options, { udp, server, port: (server.address() as AddressInfo).port });
      } catch (error) {
        udp.close();
        server.close();
        if (options.port || attempt >= MAX_PORT_TRIES || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE')
          throw error;
      }
    }
  }

  local(_transport: TransportName): { host: string; port: number } {
    return { host: this.#options.address, port: this.port };
  }

  send(message: SipMessage, target: Target): void {
    if (this.#closed) return;
    // A Via may contain any number, and the system throws for invalid ports.
    if (target.port < 1 || target.port > 65_535) {
      queueMicrotask(() => this.#options.onFailure(target));
      return;
    }
    if (target.transport === 'TCP') {
      this.#tcp.send(message, target);
      return;
    }
    this.#udp.send(writeMessage(message), target.port, target.host, (error) => {
      if (error && !this.#closed) this.#options.onFailure(target);
    });
  }

  /** Keeps a NAT binding open. */
  keepAlive(target: Target): void {
    if (this.#closed) return;
    if (target.transport === 'TCP') this.#tcp.keepAlive(target);
    else this.#udp.send('\r\n\r\n', target.port, target.host, () => {});
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#tcp.close();
    await Promise.all([
      new Promise<void>((done) => this.#udp.close(() => done())),
      new Promise<void>((done) => this.#server.close(() => done())),
    ]);
  }

  #receive(data: Buffer, source: Target): void {
    let message: SipMessage;
    try {
      message = parseMessage(data);
    } catch {
      // Keep-alives and noise.
      return;
    }
    this.#options.onMessage(message, source);
  }
}
