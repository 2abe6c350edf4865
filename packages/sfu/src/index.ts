export type * from './media-engine.js';
