export { createPeerSession } from './negotiation/session.js';
export { createPeerSocketServer, PEER_SOCKET_PATH } from './socket/peer-socket-server.js';
