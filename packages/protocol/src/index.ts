export type * from './notification.js';
