import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { MAX_PEER_MESSAGE_BYTES } from '@bloom/protocol';
import { WebSocketServer } from 'ws';
import { attachPeerSocket, type PeerSocketOptions } from './peer-socket.js';

/** Where the client SDKs connect. */
export const PEER_SOCKET_PATH = '/socket/peer/websocket';

export interface PeerSocketServer {
  /** For the `upgrade` event of an HTTP server, once the path was found to be `PEER_SOCKET_PATH`. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends every socket without a close frame. */
  close(): void;
}

/** The peer websocket without a listener of its own: the application has one port for everything. */
export function createPeerSocketServer(options: PeerSocketOptions): PeerSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    // Enforced on the length that a frame announces, before anything is allocated for it.
    maxPayload: MAX_PEER_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  return {
    handleUpgrade(request, socket, head) {
      server.handleUpgrade(request, socket, head, (accepted) => attachPeerSocket(accepted, options));
    },
    close() {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}
