export { WhipError, type WhipErrorCode } from './errors.js';
export { createHttpSession } from './http-session.js';
export type { SessionRole, WatchedSource } from './session-message.js';
export { type OpenedSession, type SessionCaller, WhipService } from './whip-service.js';
