export { dnsStrategy } from './dns.js';
export { connectTcp, openAgents, type RacingAgents } from './names/connect.js';
export { inRacingOrder, race } from './names/race.js';
export { ResolveError } from './names/resolve-error.js';
export { type Names, systemResolver } from './names/resolver.js';
export { nodesList } from './nodes-list.js';
export type { DiscoveryWarning, Strategy } from './strategy.js';
