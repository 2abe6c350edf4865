// Everything that also runs in browsers and edge runtimes. Webhook signatures need Node.js cryptography.
export type { BloomClientOptions } from './client.js';
export { BloomClient } from './client.js';
export type * from './cluster-types.js';
export type * from './created.js';
export { BloomApiError, BloomConnectionError, BloomMessageError } from './errors.js';
export type { NotificationStreamOptions } from './notifications.js';
export type { ReconnectingStreamOptions } from './reconnecting.js';
export type * from './types.js';
