export { createPeerSession } from './negotiation/session.js';
