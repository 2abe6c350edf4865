/** Shapes of the messages between nodes about rooms, peers and components. */
import {
  count,
  either,
  flag,
  json,
  limited,
  list,
  nullable,
  object,
  oneOf,
  optional,
  outcome as outcomeShape,
  text,
  type Shape,
} from '@bloom/actors';
import type { ComponentType } from '../component-schemas.js';
import { MessageContent, ServerMetadata } from '../options.js';
import type { Outcome } from '../outcome.js';
import type {
  ComponentView,
  CreatedRoom,
  NamedConfig,
  PeerChanges,
  PeerPermissions,
  PeerView,
  RoomChanges,
  RoomErrorCode,
  RoomView,
  TrackView,
} from '../room-service.js';
import { validate } from '../validation.js';

const CODES: Record<RoomErrorCode, true> = {
  ROOM_NOT_FOUND: true,
  ROOM_EXISTS: true,
  ROOM_FAILED: true,
  PEER_NOT_FOUND: true,
  TRACK_NOT_FOUND: true,
  PEER_CONNECTED: true,
  TOO_MANY_CONNECTIONS: true,
  SESSION_NOT_FOUND: true,
  PEER_LIMIT: true,
  INVITATION_USED: true,
  INVITATION_LIMIT: true,
  PEER_TYPE_DISABLED: true,
  COMPONENT_NOT_FOUND: true,
  COMPONENT_TYPE_DISABLED: true,
  COMPONENT_LIMIT: true,
  INCOMPATIBLE_CODEC: true,
  INVALID_OPTIONS: true,
  MISSING_OPTION: true,
  FILE_NOT_FOUND: true,
  NOT_SUBSCRIBABLE: true,
  SUBSCRIBE_MODE_AUTO: true,
  NOT_A_SIP_COMPONENT: true,
  NOT_A_RECORDING: true,
  OWNER_UNREACHABLE: true,
  MEMBER_SILENT: true,
  NO_NODE: true,
  DRAINING: true,
};

export const outcome = <T>(value: Shape<T>): Shape<Outcome<T>> => outcomeShape(value, CODES, 'OWNER_UNREACHABLE');

/** Any text: ids chosen by clients and backends are checked where they enter. */
export const id = text();

const dataEvents = list(text());
/** Any text: a node refuses unknown kinds of components on its own. */
export const componentType = text() as Shape<ComponentType>;

// The owner of a room keeps or forwards these, so the limits of the HTTP API also apply to members.
const metadata = limited(json, (value) => validate(ServerMetadata, value).success, 'metadata of at most 64 KiB');
const { topic, data } = MessageContent.shape;
export const messageTopic = limited(text(), (value) => validate(topic, value).success, 'a topic');
export const messageData = limited(json, (value) => validate(data, value).success, 'data of at most 16 KiB');

export const properties: Shape<Record<string, unknown>> = (value, reading) => {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);

  return isObject ? (json(value, reading) as ReturnType<typeof properties>) : reading.fail('an object');
};

export const namedConfig: Shape<NamedConfig> = object({
  roomId: id,
  maxPeers: nullable(count),
  videoCodec: nullable(oneOf(['h264', 'vp8'])),
  webhookUrl: nullable(text()),
  peerlessPurgeTimeout: nullable(count),
  peerDisconnectedTimeout: nullable(count),
  name: optional(text()),
  dataEvents: optional(dataEvents),
  metadata: optional(metadata),
} satisfies Record<keyof NamedConfig, unknown>);

export const roomChanges: Shape<RoomChanges> = object({
  maxPeers: optional(nullable(count)),
  peerlessPurgeTimeout: optional(nullable(count)),
  peerDisconnectedTimeout: optional(nullable(count)),
  dataEvents: optional(nullable(dataEvents)),
  metadata: optional(metadata),
} satisfies Record<keyof RoomChanges, unknown>);

const publish = either(flag, list(oneOf(['audio', 'video', 'data']), 3));
export const permissions: Shape<PeerPermissions> = object({ publish, subscribe: flag, metadata: flag });

export const peerChanges: Shape<PeerChanges> = object({
  metadata: optional(metadata),
  fields: optional(limited(properties, (value) => validate(ServerMetadata, value).success, 'fields of at most 64 KiB')),
  permissions: optional(
    object({
      publish: optional(nullable(publish)),
      subscribe: optional(nullable(flag)),
      metadata: optional(nullable(flag)),
    } satisfies Record<keyof PeerPermissions, unknown>),
  ),
} satisfies Record<keyof PeerChanges, unknown>);

export const trackView: Shape<TrackView> = object({
  id,
  type: oneOf(['audio', 'video']),
  metadata: json,
  muted: optional(flag),
} satisfies Record<keyof TrackView, unknown>);

export const peerView: Shape<PeerView> = object({
  id,
  type: oneOf(['webrtc']),
  status: oneOf(['connected', 'disconnected']),
  tracks: list(trackView),
  metadata: json,
  permissions: optional(permissions),
} satisfies Record<keyof PeerView, unknown>);

export const componentView: Shape<ComponentView> = object({
  id,
  type: componentType,
  properties,
  tracks: list(trackView),
});

export const roomView: Shape<RoomView> = object({
  id,
  config: namedConfig,
  components: list(componentView),
  peers: list(peerView),
});

export const createdRoom: Shape<CreatedRoom> = object({ room: roomView, address: text() });
