/** The server websocket and webhooks: one frame or request body is one `ServerMessage`. */
import { create, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { decodeBounded } from './decode.js';
import {
  ServerMessage_EventType as EventType,
  ServerMessage_TrackType as WireTrackType,
  ServerMessageSchema,
  type ServerMessage as WireMessage,
  type ServerMessage_Track as WireTrack,
} from './gen/jellyfish/server_notifications_pb.js';
import type { Notification, TrackInfo, TrackOwner } from './notification.js';
import type { UnknownContent } from './peer-message.js';
import { ProtocolError } from './protocol-error.js';

/** Maximum accepted message; peer metadata and metrics reports are the large ones. */
const MAX_SERVER_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Events that may follow the end of their room. */
export const UPLOAD_REPORTS: ReadonlySet<Notification['type']> = new Set([
  'hlsUploaded',
  'hlsUploadCrashed',
  'recordingUploaded',
  'recordingFailed',
]);

/** Subscriptions of the server websocket. */
export type SubscriptionType = 'serverNotification' | 'metrics' | 'data' | 'recording';

export type ServerMessage =
  | Notification
  | { type: 'authenticated' }
  | { type: 'authRequest'; token: string }
  /** `eventType` is null if the number on the wire is 0 or unknown. */
  | { type: 'subscribeRequest'; eventType: SubscriptionType | null }
  | { type: 'subscribeResponse'; eventType: SubscriptionType | null }
  /** Any JSON value. */
  | { type: 'metricsReport'; metrics: unknown };

/** Encodes a notification for a websocket frame or a webhook body. */
export function encodeNotification(notification: Notification): Uint8Array {
  return encodeServerMessage(notification);
}

export function encodeServerMessage(message: ServerMessage): Uint8Array {
  return toBinary(ServerMessageSchema, create(ServerMessageSchema, { content: toContent(message) }));
}

/**
 * Decodes one frame or webhook body.
 * @throws ProtocolError `FRAME_TOO_LARGE`, or `FRAME_UNDECODABLE` (also for metadata that is not JSON text); nothing
 * else.
 */
export function decodeServerMessage(
  bytes: Uint8Array,
  maxBytes = MAX_SERVER_MESSAGE_BYTES,
): ServerMessage | UnknownContent {
  return fromContent(decodeBounded(ServerMessageSchema, bytes, maxBytes).content);
}

type ContentInit = MessageInitShape<typeof ServerMessageSchema>['content'];

function toContent(message: ServerMessage): NonNullable<ContentInit> {
  switch (message.type) {
    case 'authenticated':
      return { case: 'authenticated', value: {} };
    case 'authRequest':
      return { case: 'authRequest', value: { token: message.token } };
    case 'subscribeRequest':
      return { case: 'subscribeRequest', value: { eventType: toEventType(message.eventType) } };
    case 'subscribeResponse':
      return { case: 'subscribeResponse', value: { eventType: toEventType(message.eventType) } };
    case 'metricsReport':
      return { case: 'metricsReport', value: { metrics: jsonText(message.metrics) } };
    case 'roomCreated':
    case 'roomDeleted':
    case 'roomCrashed':
    case 'hlsUploaded':
    case 'hlsUploadCrashed':
      return { case: message.type, value: { roomId: message.roomId } };
    case 'peerAdded':
    case 'peerDeleted':
    case 'peerConnected':
    case 'peerDisconnected':
      return { case: message.type, value: { roomId: message.roomId, peerId: message.peerId } };
    case 'peerCrashed': {
      const { roomId, peerId, reason } = message;
      return { case: 'peerCrashed', value: { roomId, peerId, reason } };
    }
    case 'peerMetadataUpdated': {
      const { roomId, peerId, metadata } = message;
      return { case: 'peerMetadataUpdated', value: { roomId, peerId, metadata: jsonText(metadata) } };
    }
    case 'componentCrashed':
    case 'hlsPlayable':
      return { case: message.type, value: { roomId: message.roomId, componentId: message.componentId } };
    case 'trackAdded':
    case 'trackRemoved':
    case 'trackMetadataUpdated':
      return { case: message.type, value: toTrackEvent(message) };
    case 'recordingUploaded': {
      const { roomId, componentId, prefix, files } = message;
      return { case: 'recordingUploaded', value: { roomId, componentId, prefix, files } };
    }
    case 'recordingFailed': {
      const { roomId, componentId, prefix, files, reason } = message;
      return { case: 'recordingFailed', value: { roomId, componentId, prefix, files, reason } };
    }
    case 'dataMessage': {
      const { roomId, peerId, label, to, data } = message;
      const content =
        typeof data === 'string'
          ? ({ case: 'text', value: data } as const)
          : ({ case: 'binary', value: new Uint8Array(data) } as const);
      return { case: 'dataMessage', value: { roomId, peerId, label, to, data: content } };
    }
  }
}

function fromContent(content: WireMessage['content']): ServerMessage | UnknownContent {
  switch (content.case) {
    case undefined:
      return { type: 'unknown' };
    case 'authenticated':
      return { type: 'authenticated' };
    case 'authRequest':
      return { type: 'authRequest', token: content.value.token };
    case 'subscribeRequest':
    case 'subscribeResponse':
      return { type: content.case, eventType: fromEventType(content.value.eventType) };
    case 'metricsReport':
      return { type: 'metricsReport', metrics: jsonValue(content.value.metrics) };
    case 'roomCreated':
    case 'roomDeleted':
    case 'roomCrashed':
    case 'hlsUploaded':
    case 'hlsUploadCrashed':
      return { type: content.case, roomId: content.value.roomId };
    case 'peerAdded':
    case 'peerDeleted':
    case 'peerConnected':
    case 'peerDisconnected':
      return { type: content.case, roomId: content.value.roomId, peerId: content.value.peerId };
    case 'peerCrashed': {
      const { roomId, peerId, reason } = content.value;
      return { type: 'peerCrashed', roomId, peerId, reason };
    }
    case 'peerMetadataUpdated': {
      const { roomId, peerId, metadata } = content.value;
      return { type: 'peerMetadataUpdated', roomId, peerId, metadata: jsonValue(metadata) };
    }
    case 'componentCrashed':
    case 'hlsPlayable':
      return { type: content.case, roomId: content.value.roomId, componentId: content.value.componentId };
    case 'trackAdded':
    case 'trackRemoved':
    case 'trackMetadataUpdated': {
      const { roomId, endpointInfo, track } = content.value;
      return { type: content.case, roomId, owner: fromOwner(endpointInfo), track: fromTrack(track) };
    }
    case 'recordingUploaded': {
      const { roomId, componentId, prefix, files } = content.value;
      return { type: 'recordingUploaded', roomId, componentId, prefix, files };
    }
    case 'recordingFailed': {
      const { roomId, componentId, prefix, files, reason } = content.value;
      return { type: 'recordingFailed', roomId, componentId, prefix, files, reason };
    }
    case 'dataMessage': {
      const { roomId, peerId, label, to, data } = content.value;
      return { type: 'dataMessage', roomId, peerId, label, to, data: data.value ?? '' };
    }
  }
}

function toTrackEvent({ roomId, owner, track }: { roomId: string; owner: TrackOwner; track: TrackInfo }) {
  return {
    roomId,
    endpointInfo:
      'peerId' in owner
        ? ({ case: 'peerId', value: owner.peerId } as const)
        : ({ case: 'componentId', value: owner.componentId } as const),
    track: {
      id: track.id,
      type: track.type === 'video' ? WireTrackType.VIDEO : WireTrackType.AUDIO,
      metadata: jsonText(track.metadata),
    },
  };
}

function fromOwner(info: { case: 'peerId' | 'componentId' | undefined; value?: string | undefined }): TrackOwner {
  if (info.case === 'peerId') return { peerId: info.value ?? '' };
  if (info.case === 'componentId') return { componentId: info.value ?? '' };
  throw new ProtocolError('FRAME_UNDECODABLE', 'the track of a ServerMessage has neither a peer nor a component');
}

function fromTrack(track: WireTrack | undefined): TrackInfo {
  if (track === undefined)
    throw new ProtocolError('FRAME_UNDECODABLE', 'a track event of a ServerMessage has no track');
  if (track.type !== WireTrackType.VIDEO && track.type !== WireTrackType.AUDIO) {
    throw new ProtocolError('FRAME_UNDECODABLE', `${track.type} is not a type of track`);
  }
  const type = track.type === WireTrackType.VIDEO ? 'video' : 'audio';
  return { id: track.id, type, metadata: jsonValue(track.metadata) };
}

const EVENT_TYPES = {
  serverNotification: EventType.SERVER_NOTIFICATION,
  metrics: EventType.METRICS,
  data: EventType.DATA,
  recording: EventType.RECORDING,
} as const satisfies Record<SubscriptionType, EventType>;

function toEventType(type: SubscriptionType | null): EventType {
  return type === null ? EventType.UNSPECIFIED : EVENT_TYPES[type];
}

function fromEventType(type: EventType): SubscriptionType | null {
  if (type === EventType.SERVER_NOTIFICATION) return 'serverNotification';
  if (type === EventType.DATA) return 'data';
  if (type === EventType.RECORDING) return 'recording';
  return type === EventType.METRICS ? 'metrics' : null;
}

/** Returns compact JSON text; values that JSON cannot express (`undefined`) become `null`. */
function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError('FRAME_UNDECODABLE', `${text.length} characters in a ServerMessage are not JSON`, {
      cause,
    });
  }
}
