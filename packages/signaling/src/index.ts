export { createPeerSession } from './negotiation/session.js';
export {
  AUTH_TIMEOUT_MS,
  attachPeerSocket,
  type PeerSocketOptions,
  PING_PERIOD_MS,
  type Timers,
} from './socket/peer-socket.js';
export { createPeerSocketServer, PEER_SOCKET_PATH, type PeerSocketServer } from './socket/peer-socket-server.js';
