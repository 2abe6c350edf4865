export { Call, type CallEvent, type CallOptions, type CallState } from './call.js';
export type { Account } from './dialog.js';
export { type EndReason, reasonOfStatus } from './end-reason.js';
export { parsePhoneNumber, parseRegistrar } from './identity.js';
export {
  Registration,
  type RegistrationEvent,
  type RegistrationFailure,
  type RegistrationState,
} from './registration.js';
