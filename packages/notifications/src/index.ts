export { NotificationBus, type Envelope, type EnvelopeListener, type Source } from './bus.js';
export { countNotifications } from './count-notification.js';
export type { Interest } from './frame-batch.js';
export { MetricsReporter, type MetricsReporterOptions } from './metrics-reporter.js';
export type { ReportNode } from './rates.js';
export { OperatorWebhooks } from './operator-webhooks.js';
export { ServerSocket, type ServerSocketOptions } from './server-socket.js';
export { WebhookError, type WebhookPoster } from './webhook-post.js';
export { Webhooks, type WebhooksOptions } from './webhooks.js';
