/** Sample answers of nodes, identical in every run. The stored views are made from them. */
export * from './answers-actors.js';
export * from './answers-cluster.js';
export * from './answers-media.js';
export * from './answers-people.js';
