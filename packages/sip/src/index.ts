export { type Challenge, chooseChallenge, type Credentials, DigestClient } from './digest.js';
export { SipParseError } from './errors.js';
export { SipHeaders, splitList } from './headers.js';
export {
  MAX_MESSAGE_BYTES,
  parseMessage,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  writeMessage,
} from './message.js';
export { StreamFramer } from './stream-framer.js';
export * from './values.js';
