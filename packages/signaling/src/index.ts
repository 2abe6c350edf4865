export { createPeerSession } from './negotiation/session.js';
export { openPeerSocketServer, PEER_SOCKET_PATH } from './socket/peer-socket-server.js';
