export * from './srtp/index.js';
export { createCertificate, type DtlsCertificate } from './dtls/certificate.js';
export { WebrtcError } from './errors.js';
export type { RelayRoute, RelayStream, RelayStreamOptions } from './relay/relay-stream.js';
export { TcpAcceptor } from './relay/tcp-acceptor.js';
export {
  type MediaPort,
  type PathState,
  type PeerTransport,
  type PeerTransportHandlers,
  type PeerTransportOptions,
  type TransportParameters,
} from './transport/api.js';
export { openMediaPort } from './transport/open-media-port.js';
export * from './sdp/index.js';
export { asReceived } from './warm-up/as-received.js';
export { warmUpJoins } from './warm-up/warm-up-joins.js';
