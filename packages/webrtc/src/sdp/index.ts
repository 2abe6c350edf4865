export { type AnswerMedia, writeAnswer } from './answer.js';
export { type ChosenCodec, choosePublishedCodec, chooseReceivedCodec } from './codecs.js';
export { type AgreedExtensions, chooseExtensions, EXTENSION_URIS } from './extensions.js';
export { type OfferedMedia } from './offer.js';
export { parseOffer } from './parse-offer.js';
export { SdpError } from './sdp-error.js';
