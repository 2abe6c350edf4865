export type { CallEvent, MovingCall } from './calls/call-options.js';
export { checkCredentials, parsePhoneNumber, parseRegistrar } from './calls/identity.js';
export type { RegistrationEvent } from './calls/registration.js';
export { type Challenge, chooseChallenge, type Credentials, DigestClient } from './digest.js';
export { type CodecName, FRAME_MS } from './media/codecs.js';
export { FramePacer } from './media/frame-pacer.js';
export { decodeG711, encodeG711 } from './media/g711.js';
export {
  type CallAudio,
  type CallMedia,
  type MediaAddresses,
  MediaPort,
  type OpenMedia,
} from './media/media-port.js';
export type { NegotiatedAudio } from './media/negotiation.js';
export type { RtpStats } from './media/rtp-session.js';
export type { LoggedMessage } from './message-log.js';
export { systemRandomness } from './randomness.js';
export {
  type DialOptions,
  type PhoneCall,
  type RegistrarCredentials,
  SipPhone,
  type SipPhoneOptions,
} from './sip-phone.js';
