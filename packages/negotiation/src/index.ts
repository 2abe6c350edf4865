export { Identifiers } from './identifiers.js';
export { type Bitrates, isVariant } from './layers.js';
export {
  describePublication,
  type OfferedTracks,
  Publications,
  type PublishedMedia,
  toNegotiatedCodec,
  UnacceptableOffer,
} from './publications.js';
export { chooseTrackCodec } from './received-codec.js';
