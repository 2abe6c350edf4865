export { Call, type CallEvent, type CallOptions } from './call.js';
export type { Account } from './dialog.js';
export { type EndReason, reasonOfStatus } from './end-reason.js';
export { parsePhoneNumber, parseRegistrar } from './identity.js';
export { Registration, type RegistrationEvent, type RegistrationFailure } from './registration.js';
