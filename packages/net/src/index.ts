export { acceptProxied } from './accept-proxied.js';
export { addressBytes, addressText, networkOf } from './address.js';
export { binaryFrame } from './binary-frame.js';
export { ConnectionShares } from './connection-shares.js';
export { firstBytes } from './first-bytes.js';
export { gatheredWrites } from './gathered-writes.js';
export { type Endpoint, TrustedProxies } from './trusted-proxies.js';
export { UnauthenticatedSockets, type Upgrade } from './unauthenticated-sockets.js';
