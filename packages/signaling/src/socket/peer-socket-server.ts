import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { networkOf, UnauthenticatedSockets } from '@bloom/net';
import { MAX_PEER_MESSAGE_BYTES } from '@bloom/protocol';
import { LogThrottle } from '@bloom/time';
import { WebSocketServer } from 'ws';
import { attachPeerSocket, type PeerSocketOptions } from './peer-socket.js';

/** The path that the client SDKs connect to. */
export const PEER_SOCKET_PATH = '/socket/peer/websocket';

export interface PeerSocketServer {
  /** Handles the `upgrade` event of an HTTP server for `PEER_SOCKET_PATH`. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends every socket without a close frame. */
  close(): void;
}

/** Creates the peer websocket without a listener of its own: the application has one port for everything. */
export function createPeerSocketServer(options: PeerSocketOptions): PeerSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    // Enforced on the announced length, before anything is allocated.
    maxPayload: MAX_PEER_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  const throttle = new LogThrottle(options.clock);
  const unauthenticated = new UnauthenticatedSockets({
    onDrop: (dropped) => {
      if (throttle.allows(networkOf(dropped.address))) options.log.warn('peer_socket.stranger_dropped', dropped);
    },
  });
  return {
    handleUpgrade(request, socket, head) {
      server.handleUpgrade(request, socket, head, (accepted) => {
        const { remoteAddress: address } = request.socket;
        const isOpen = () => accepted.readyState === accepted.OPEN;
        attachPeerSocket(accepted, options, {
          authenticated: unauthenticated.add(socket, { address, isOpen }),
          mayLog: (what) => throttle.allows(`${what} ${networkOf(address ?? '')}`),
        });
      });
    },
    close() {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}
