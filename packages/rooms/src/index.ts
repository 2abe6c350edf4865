export type * from './peer-session.js';
export * from './room-service.js';
