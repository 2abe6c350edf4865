export type { BloomClientOptions, CreatedPeer, CreatedRoom } from './client.js';
export { BloomClient } from './client.js';
export { BloomApiError, BloomConnectionError } from './errors.js';
export type { NotificationStreamOptions } from './notifications.js';
export type * from './types.js';
