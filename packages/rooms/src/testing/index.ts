export { moveKitchen } from './move-kitchen.js';
export { TestCluster } from './test-cluster.js';
export * from './test-node.js';
export { roomServiceSuite } from './room-service-suite.js';
