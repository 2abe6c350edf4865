export type * from './notification.js';
export {
  decodePeerMessage,
  encodePeerMessage,
  MAX_MEDIA_EVENT_BYTES,
  MAX_PEER_MESSAGE_BYTES,
  type PeerMessage,
  type UnknownContent,
} from './peer-message.js';
export { ProtocolError, type ProtocolErrorCode } from './protocol-error.js';
export {
  decodeServerMessage,
  encodeNotification,
  encodeServerMessage,
  type ServerMessage,
  type SubscriptionType,
  UPLOAD_REPORTS,
} from './server-message.js';
