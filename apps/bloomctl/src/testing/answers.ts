/** Sample answers of nodes, the same in every run: the stored views are made from them. */
export * from './answers-actors.js';
export * from './answers-cluster.js';
export * from './answers-media.js';
