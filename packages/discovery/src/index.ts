export { dnsStrategy } from './dns.js';
export { nodesList } from './nodes-list.js';
export type { Resolve4, ResolverOptions } from './resolver.js';
export { createResolver, ResolveError } from './resolver.js';
export type { DiscoveryWarning, Strategy } from './strategy.js';
