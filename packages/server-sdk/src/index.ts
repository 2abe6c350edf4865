export * from './browser.js';
export { parseWebhook, type WebhookOptions } from './webhook.js';
