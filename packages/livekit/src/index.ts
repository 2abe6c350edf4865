export { LivekitFace, type LivekitFaceOptions, SIGNAL_PATHS } from './socket/livekit-face.js';
export { createLivekitSession } from './session/session.js';
export type { ApiKey } from './tokens.js';
export { webhookHeaders } from './tokens.js';
export { WebhookEvents } from './api/webhook-events.js';
