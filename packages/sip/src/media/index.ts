export { type Codec, type CodecName, codecs, FRAME_MS, G711_FRAME_SAMPLES, silenceOf } from './codecs.js';
export { FramePacer } from './frame-pacer.js';
export { decodeG711, encodeG711, type G711Name } from './g711.js';
export { JitterBuffer, type JitterBufferOptions, type JitterStats } from './jitter-buffer.js';
export {
  type CallAudio,
  type CallMedia,
  type MediaAddresses,
  MediaPort,
  type MediaPortOptions,
  type OpenMedia,
} from './media-port.js';
export { AudioNegotiator, type AudioNegotiatorOptions, type NegotiatedAudio } from './negotiation.js';
export { type PcmAudio, pcmAudio } from './pcm-audio.js';
export { type RtpAddress, RtpSession, type RtpSessionOptions, type RtpStats } from './rtp-session.js';
export { type Direction, parseSdp, type Sdp, type SdpFormat, type SdpMedia, writeSdp } from './sdp.js';
