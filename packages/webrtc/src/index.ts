export * from './srtp/index.js';
export { createCertificate, type DtlsCertificate } from './dtls/certificate.js';
export type { DtlsState } from './dtls/dtls-session.js';
export { WebrtcError } from './errors.js';
export type { RelayRoute, RelayStream, RelayStreamOptions } from './relay/relay-stream.js';
export { TcpAcceptor, type TcpAcceptorOptions } from './relay/tcp-acceptor.js';
export {
  type IceCredentials,
  type IceState,
  type MediaPort,
  type MediaPortOptions,
  type MediaPortStats,
  type PacketWatcher,
  type PathState,
  type PeerTransport,
  type PeerTransportHandlers,
  type PeerTransportOptions,
  type RelayUser,
  type TransportCounters,
  type TransportParameters,
} from './transport/api.js';
export { DROP_REASONS, type DropCounters, type DropReason } from './drops.js';
export { openMediaPort } from './transport/open-media-port.js';
export * from './sdp/index.js';
export { asReceived } from './warm-up/as-received.js';
export { warmUpJoins } from './warm-up/warm-up-joins.js';
