export { addressBytes, addressText, networkOf } from './address.js';
export { ConnectionShares } from './connection-shares.js';
export { UnauthenticatedSockets } from './unauthenticated-sockets.js';
