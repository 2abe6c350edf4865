import type { Server, Socket } from 'node:net';
import { type Endpoint, firstBytes } from '@bloom/net';
import type { Connections } from './connections.js';

/** Limit for a client to show its protocol after the TLS handshake. */
const FIRST_BYTES_MS = 10_000;

/** Serves a client of TURN over TLS from its first byte on. */
export type RelayHandler = (socket: Socket, client: Endpoint) => void;

export interface SharedPortOptions {
  connections: Connections;
  relay: RelayHandler;
  /** Limit for the first bytes. */
  firstBytesMs?: number | undefined;
}

/**
 * Lets HTTP and TURN over TLS share the port of an HTTPS server. Its `connections` count every client until the first
 * bytes show the protocol; the relay has its own limits.
 */
export function sharePort(server: Server, { connections, relay, firstBytesMs = FIRST_BYTES_MS }: SharedPortOptions) {
  const serve = server.listeners('secureConnection') as ((socket: Socket) => void)[];
  server.removeAllListeners('secureConnection');
  const isHttp = new WeakSet<Socket>();
  const proceed = (socket: Socket): void => {
    for (const listener of serve) listener.call(server, socket);
  };
  server.on('secureConnection', (socket: Socket) => {
    // A request that is parsed again.
    if (isHttp.has(socket)) {
      proceed(socket);
      return;
    }
    afterFirstBytes(socket, firstBytesMs, (protocol) => {
      if (protocol === 'http') {
        isHttp.add(socket);
        proceed(socket);
        return;
      }
      const client = connections.handOver(socket);
      socket.setKeepAlive(true);
      relay(socket, client);
    });
  });
}

/** Reads until the protocol is clear and puts the bytes back. Closes a connection that shows none in time. */
function afterFirstBytes(socket: Socket, limitMs: number, run: (protocol: 'http' | 'turn') => void): void {
  const ignore = (): void => undefined;
  const late = setTimeout(() => socket.destroy(), limitMs);
  const stop = (): void => {
    clearTimeout(late);
    socket.off('readable', read).off('close', stop).off('error', ignore);
  };
  let received: Buffer = Buffer.alloc(0);
  const read = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const protocol = firstBytes(received);
    if (protocol === 'undecided') return;
    if (protocol === 'neither') {
      socket.destroy();
      return;
    }
    stop();
    socket.unshift(received);
    run(protocol);
  };
  socket.on('error', ignore).on('readable', read).once('close', stop);
}
