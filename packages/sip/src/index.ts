export * from './calls/index.js';
export { type Clock, monotonicClock } from './clock.js';
export { type Challenge, chooseChallenge, type Credentials, DigestClient } from './digest.js';
export { BadPhoneNumber, SdpError, SipError, SipParseError, SipStateError } from './errors.js';
export { SipHeaders, splitList } from './headers.js';
export * from './media/index.js';
export {
  MAX_MESSAGE_BYTES,
  parseMessage,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  writeMessage,
} from './message.js';
export { type LoggedMessage, maskCredentials, MessageLog } from './message-log.js';
export { type Randomness, systemRandomness } from './randomness.js';
export {
  type DialOptions,
  type PhoneCall,
  type RegistrarCredentials,
  SipPhone,
  type SipPhoneOptions,
} from './sip-phone.js';
export { StreamFramer } from './stream-framer.js';
export { locate, type NameService, type NaptrRecord, orderSrv, type SrvRecord } from './transport/locate.js';
export { type NameServiceOptions, systemNames } from './transport/name-service.js';
export { SipTransport, type SipTransportOptions } from './transport/sip-transport.js';
export type { Target, TransportName } from './transport/target.js';
export { type CallRequest, type RegisterOptions, UserAgent, type UserAgentPort } from './user-agent.js';
export * from './values.js';
