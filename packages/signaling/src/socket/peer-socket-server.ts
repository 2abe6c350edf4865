import { gatheredWrites, networkOf, UnauthenticatedSockets, type Upgrade } from '@bloom/net';
import { MAX_PEER_MESSAGE_BYTES } from '@bloom/protocol';
import { LogThrottle } from '@bloom/time';
import { type WebSocket, WebSocketServer } from 'ws';
import { attachPeerSocket, type PeerSocketOptions } from './peer-socket.js';

/** The path that the client SDKs connect to. */
export const PEER_SOCKET_PATH = '/socket/peer/websocket';

export interface PeerSocketServer {
  /**
   * Handles the `upgrade` event of an HTTP server for `PEER_SOCKET_PATH`. Returns false when too many clients are
   * authenticating, so that the caller refuses the upgrade.
   */
  handleUpgrade(upgrade: Upgrade): boolean;
  /** Ends every socket without a close frame. */
  close(): void;
}

/** Opens the peer websocket server without a listener: the application serves everything on one port. */
export function openPeerSocketServer(options: PeerSocketOptions): PeerSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    // Enforced on the announced length, before anything is allocated.
    maxPayload: MAX_PEER_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  const throttle = new LogThrottle(options.clock);
  const { clock } = options;
  /** Peers that have a websocket which was no stranger's before its room was found. */
  const proven = new Set<string>();
  const unauthenticated = new UnauthenticatedSockets({
    ...(clock === undefined ? {} : { now: () => clock.now() }),
    onDrop: (dropped) => {
      if (throttle.allows(networkOf(dropped.address))) options.log.warn('peer_socket.stranger_dropped', dropped);
    },
  });
  return {
    handleUpgrade({ request, socket, head, address }) {
      let webSocket: WebSocket | undefined;
      const isOpen = () => webSocket === undefined || webSocket.readyState === webSocket.OPEN;
      const authenticated = unauthenticated.add(socket, { address, isOpen });
      if (authenticated === undefined) return false;
      server.handleUpgrade(request, socket, head, (accepted) => {
        webSocket = accepted;
        attachPeerSocket(accepted, options, {
          proven: ({ roomId, peerId }) => {
            const peer = JSON.stringify([roomId, peerId]);
            // One for each peer: a single token could take any number of places.
            if (proven.has(peer)) return;
            proven.add(peer);
            accepted.once('close', () => proven.delete(peer));
            authenticated();
          },
          authenticated,
          // Between two frames of ws, which writes each at once: it compresses nothing.
          write: gatheredWrites(socket),
          mayLog: (what) => throttle.allows(`${what} ${networkOf(address)}`),
        });
      });
      return true;
    },
    close() {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}
