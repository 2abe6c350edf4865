export { TestCluster } from './test-cluster.js';
export * from './test-node.js';
