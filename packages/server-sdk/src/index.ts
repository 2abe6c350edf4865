export type { BloomClientOptions, CreatedPeer, CreatedRoom } from './client.js';
export { BloomClient } from './client.js';
export { BloomApiError, BloomConnectionError, BloomMessageError } from './errors.js';
export { type NotificationStreamOptions, parseWebhook } from './notifications.js';
export type * from './types.js';
