export { type AnswerMedia, type AnswerOptions, type AnswerRole, writeAnswer } from './answer.js';
export {
  type ChosenCodec,
  choosePublishedCodec,
  chooseReceivedCodec,
  formatParameters,
  isConstrainedBaseline,
  type SupportedCodec,
} from './codecs.js';
export { type AgreedExtensions, chooseExtensions, EXTENSION_URIS } from './extensions.js';
export {
  DEFAULT_SDP_LIMITS,
  type Direction,
  type OfferedCodec,
  type OfferedExtension,
  type OfferedMedia,
  type OfferedSource,
  type OfferedTransport,
  type SdpLimits,
  type SdpOffer,
} from './offer.js';
export { parseOffer } from './parse-offer.js';
export { SdpError } from './sdp-error.js';
