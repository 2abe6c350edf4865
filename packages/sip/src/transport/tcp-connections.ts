import type { Socket } from 'node:net';
import { createConnection } from 'node:net';
import type { SipMessage } from '../message.js';
import { writeMessage } from '../message.js';
import { StreamFramer } from '../stream-framer.js';
import type { Target } from './target.js';
import { targetText } from './target.js';

export interface TcpConnectionsOptions {
  /** Address our own connections come from. */
  localAddress: string | undefined;
  onMessage: (message: SipMessage, source: Target) => void;
  /** Messages to this hop are lost. */
  onFailure: (target: Target) => void;
}

const MAX_CONNECTIONS = 100;
/** Connections that others opened: strangers must leave room for our own. */
const MAX_ACCEPTED = 50;
/** An accepted connection has to bring a message within this time. */
const FIRST_MESSAGE_MS = 10_000;
/** A hop that does not even accept a connection. */
const CONNECT_TIMEOUT_MS = 5000;
/** Unsent bytes on one connection; a hop that reads nothing is a dead one. */
const MAX_UNSENT = 1_000_000;

/** The TCP connections of a phone, those it opened and those it was called on; RFC 3261 section 18. */
export class TcpConnections {
  readonly #options: TcpConnectionsOptions;
  readonly #sockets = new Map<string, Socket>();
  #accepted = 0;
  #closed = false;

  constructor(options: TcpConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** Sends over the connection to that hop, which is opened when there is none. */
  send(message: SipMessage, target: Target): void {
    this.#write(writeMessage(message), target);
  }

  /** Keeps the connection open on the way (RFC 5626 section 3.5.1); opens none. */
  keepAlive(target: Target): void {
    this.#sockets.get(targetText(target))?.write('\r\n\r\n');
  }

  /** Takes over a connection that somebody opened to us. */
  accept(socket: Socket): void {
    if (this.#closed || this.#accepted >= MAX_ACCEPTED || this.#sockets.size >= MAX_CONNECTIONS) {
      socket.destroy();
      return;
    }
    this.#accepted += 1;
    socket.once('close', () => (this.#accepted -= 1));
    const silent = setTimeout(() => socket.destroy(), FIRST_MESSAGE_MS).unref();
    socket.once('close', () => clearTimeout(silent));
    this.#adopt(socket, {
      transport: 'TCP',
      host: (socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
      port: socket.remotePort ?? 0,
    });
  }

  close(): void {
    this.#closed = true;
    for (const socket of this.#sockets.values()) {
      // What was written last, perhaps a BYE, still goes out.
      socket.end();
      socket.unref();
      setTimeout(() => socket.destroy(), 1000).unref();
    }
    this.#sockets.clear();
  }

  #write(data: Buffer, target: Target): void {
    let socket = this.#sockets.get(targetText(target));
    if (!socket) {
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

  #adopt(socket: Socket, target: Target): void {
    const key = targetText(target);
    this.#sockets.get(key)?.destroy();
    this.#sockets.set(key, socket);
    const framer = new StreamFramer();
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      try {
        // A ping is answered by a pong (RFC 5626 section 4.4.1).
        if (chunk.length === 4 && chunk.toString('latin1') === '\r\n\r\n') socket.write('\r\n');
        for (const message of framer.push(chunk)) this.#options.onMessage(message, target);
      } catch {
        // Where the next message begins is lost with a malformed one.
        socket.destroy();
      }
    });
    // The close that follows tells.
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#sockets.get(key) !== socket) return;
      this.#sockets.delete(key);
      if (!this.#closed) this.#options.onFailure(target);
    });
  }
}
