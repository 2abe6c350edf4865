/** Answers as nodes give them, the same at every run: what the stored samples are made of. */
export { NOW } from './answers-common.fixture.js';
export * from './answers-actors.fixture.js';
export * from './answers-cluster.fixture.js';
export * from './answers-media.fixture.js';
