export { LivekitFace, type LivekitFaceOptions } from './socket/livekit-face.js';
export { imaginaryJoins } from './socket/warm-up.js';
export { SIGNAL_PATHS } from './socket/target.js';
export { createLivekitSession } from './session/session.js';
export type { ApiKey } from './tokens.js';
export { webhookHeaders } from './tokens.js';
export { WebhookEvents } from './api/webhook-events.js';
