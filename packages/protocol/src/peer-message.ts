/** The peer websocket: one binary frame is one `PeerMessage` (docs/reference/peer-signaling.md). */
import { create, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { decodeBounded } from './decode.js';
import { PeerMessageSchema } from './gen/jellyfish/peer_notifications_pb.js';

/** Maximum JSON text of one media event, in UTF-8 bytes. */
export const MAX_MEDIA_EVENT_BYTES = 1024 * 1024;
/** Leaves room for two tags and two lengths of up to 4 bytes around the largest media event. */
export const MAX_PEER_MESSAGE_BYTES = MAX_MEDIA_EVENT_BYTES + 16;

export type PeerMessage =
  | { type: 'authenticated' }
  | { type: 'authRequest'; token: string }
  /** JSON text of one media event. */
  | { type: 'mediaEvent'; data: string };

/** A decodable message whose content this version does not know. */
export interface UnknownContent {
  type: 'unknown';
}

/**
 * Decodes one frame.
 * @throws ProtocolError `FRAME_TOO_LARGE` or `FRAME_UNDECODABLE`, and nothing else.
 */
export function decodePeerMessage(bytes: Uint8Array, maxBytes = MAX_PEER_MESSAGE_BYTES): PeerMessage | UnknownContent {
  const { content } = decodeBounded(PeerMessageSchema, bytes, maxBytes);
  switch (content.case) {
    case 'authenticated':
      return { type: 'authenticated' };
    case 'authRequest':
      return { type: 'authRequest', token: content.value.token };
    case 'mediaEvent':
      return { type: 'mediaEvent', data: content.value.data };
    default:
      return { type: 'unknown' };
  }
}

export function encodePeerMessage(message: PeerMessage): Uint8Array {
  return toBinary(PeerMessageSchema, create(PeerMessageSchema, { content: toContent(message) }));
}

type ContentInit = MessageInitShape<typeof PeerMessageSchema>['content'];

function toContent(message: PeerMessage): NonNullable<ContentInit> {
  switch (message.type) {
    case 'authenticated':
      return { case: 'authenticated', value: {} };
    case 'authRequest':
      return { case: 'authRequest', value: { token: message.token } };
    case 'mediaEvent':
      return { case: 'mediaEvent', value: { data: message.data } };
  }
}
