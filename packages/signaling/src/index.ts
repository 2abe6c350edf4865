export { createPeerSession } from './negotiation/session.js';
export { createPeerSocketServer, PEER_SOCKET_PATH } from './socket/peer-socket-server.js';
export { Identifiers } from './negotiation/identifiers.js';
export {
  describePublication,
  Publications,
  type PublishedMedia,
  toNegotiatedCodec,
} from './negotiation/publications.js';
