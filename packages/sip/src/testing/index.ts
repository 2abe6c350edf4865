/** A transport, messages and audio for tests that act as the other side of a call. */
export { SipHeaders } from '../headers.js';
export type { SipRequest, SipResponse } from '../message.js';
export { systemNames } from '../transport/locate.js';
export { SipTransport } from '../transport/sip-transport.js';
export { pcmAudio } from './pcm-audio.js';
