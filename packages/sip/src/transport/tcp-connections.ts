import type { Socket } from 'node:net';
import { createConnection } from 'node:net';
import { type Clock, Timer } from '@bloom/time';
import type { SipMessage } from '../message.js';
import { writeMessage } from '../message.js';
import { StreamFramer } from '../stream-framer.js';
import type { Target } from './target.js';
import { targetText } from './target.js';

export interface TcpConnectionsOptions {
  /** Local address of outgoing connections. */
  localAddress: string | undefined;
  onMessage: (message: SipMessage, source: Target) => void;
  /** Called when messages to this hop are lost. */
  onFailure: (target: Target) => void;
  clock: Clock;
}

const MAX_CONNECTIONS = 100;
/** Maximum number of incoming connections, so that strangers leave room for our own. */
const MAX_ACCEPTED = 50;
/** Incoming connections are closed after this long without a first message. */
const FIRST_MESSAGE_MS = 10_000;
/** Time limit for a hop to accept a connection. */
const CONNECT_TIMEOUT_MS = 5000;
/** Maximum unsent bytes per connection: a hop that reads nothing is dead. */
const MAX_UNSENT = 1_000_000;

/** A phone's outgoing and incoming TCP connections; RFC 3261 section 18. */
export class TcpConnections {
  readonly #options: TcpConnectionsOptions;
  readonly #sockets = new Map<string, Socket>();
  #accepted = 0;
  #closed = false;

  constructor(options: TcpConnectionsOptions) {
    this.#options = options;
  }

  /** Sends over the connection to that hop, opening it if necessary. */
  send(message: SipMessage, target: Target): void {
    this.#write(writeMessage(message), target);
  }

  /** Sends a keep-alive over an existing connection (RFC 5626 section 3.5.1). */
  keepAlive(target: Target): void {
    this.#sockets.get(targetText(target))?.write('\r\n\r\n');
  }

  /** Takes over an incoming connection. */
  accept(socket: Socket): void {
    if (this.#closed || this.#accepted >= MAX_ACCEPTED || this.#sockets.size >= MAX_CONNECTIONS) {
      socket.destroy();
      return;
    }
    this.#accepted += 1;
    socket.once('close', () => (this.#accepted -= 1));
    const silent = new Timer(this.#options.clock);
    silent.start(FIRST_MESSAGE_MS, () => socket.destroy());
    socket.once('close', () => silent.stop());
    const source: Target = {
      transport: 'TCP',
      host: (socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
      port: socket.remotePort ?? 0,
    };
    this.#adopt(socket, source, () => silent.stop());
  }

  close(): void {
    this.#closed = true;
    for (const socket of this.#sockets.values()) {
      // Let the last message, perhaps a BYE, go out.
      socket.end();
      socket.unref();
      setTimeout(() => socket.destroy(), 1000).unref();
    }
    this.#sockets.clear();
  }

  #write(data: Buffer, target: Target): void {
    let socket = this.#sockets.get(targetText(target));
    if (socket === undefined) {
      if (this.#closed || this.#sockets.size >= MAX_CONNECTIONS) {
        queueMicrotask(() => this.#options.onFailure(target));
        return;
      }
      const { localAddress } = this.#options;
      socket = createConnection({ host: target.host, port: target.port, ...(localAddress ? { localAddress } : {}) });
      this.#adopt(socket, target);
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket?.destroy());
      socket.once('connect', () => socket?.setTimeout(0));
    }
    if (socket.writableLength + data.length > MAX_UNSENT) socket.destroy();
    else socket.write(data);
  }

  #adopt(socket: Socket, target: Target, heard: () => void = () => {}): void {
    const key = targetText(target);
    this.#sockets.get(key)?.destroy();
    this.#sockets.set(key, socket);
    const framer = new StreamFramer();
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      try {
        // Answer a ping with a pong (RFC 5626 section 4.4.1).
        if (chunk.length === 4 && chunk.toString('latin1') === '\r\n\r\n') socket.write('\r\n');
        for (const message of framer.push(chunk)) {
          heard();
          this.#options.onMessage(message, target);
        }
      } catch {
        // After a malformed message, the start of the next one is unknown.
        socket.destroy();
      }
    });
    // 'close' follows.
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#sockets.get(key) !== socket) return;
      this.#sockets.delete(key);
      if (!this.#closed) this.#options.onFailure(target);
    });
  }
}
