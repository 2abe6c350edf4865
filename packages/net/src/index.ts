export { acceptProxied } from './accept-proxied.js';
export { addressBytes, addressText, networkOf } from './address.js';
export { ConnectionShares } from './connection-shares.js';
export { type Endpoint, TrustedProxies } from './trusted-proxies.js';
export { UnauthenticatedSockets } from './unauthenticated-sockets.js';
