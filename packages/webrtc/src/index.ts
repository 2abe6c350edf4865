export { DataLink, type DataLinkHandlers } from './data/data-link.js';
export { type ChannelKind, type ChannelName, isReliable } from './data/dcep.js';
export { createPacketSealer } from './srtp/create-sealer.js';
export { type PacketSealer, type SealStream } from './srtp/packet-sealer.js';
export { type OpenFailureName, SrtpReceiveSession } from './srtp/receive-session.js';
export { SrtpSendSession } from './srtp/send-session.js';
export { createCertificate, type DtlsCertificate } from './dtls/certificate.js';
export { WebrtcError } from './errors.js';
export type { RelayRoute, RelayStream, RelayStreamOptions } from './relay/relay-stream.js';
export { RelayConnections } from './relay/relay-connections.js';
export { TcpAcceptor } from './relay/tcp-acceptor.js';
export { type AdvertisedPorts, advertisedPort } from './transport/bind-port.js';
export {
  type MediaPort,
  type PathState,
  type PeerTransport,
  type PeerTransportHandlers,
  type PeerTransportOptions,
  type TransportParameters,
} from './transport/api.js';
export { openMediaPort } from './transport/open-media-port.js';
export { type AnswerMedia, hostCandidates, writeAnswer } from './sdp/answer.js';
export { type ChosenCodec, choosePublishedCodec, chooseReceivedCodec } from './sdp/codecs.js';
export { type AgreedExtensions, chooseExtensions, EXTENSION_URIS } from './sdp/extensions.js';
export type { OfferedMedia, SdpOffer } from './sdp/offer.js';
export { parseAnswer, parseOffer } from './sdp/parse-offer.js';
export { writeOffer } from './sdp/write-offer.js';
export { asReceived } from './warm-up/warm-up-joins.js';
export { bindingAddress, bindingRequest } from './stun/binding.js';
export { warmUpJoins } from './warm-up/warm-up-joins.js';
