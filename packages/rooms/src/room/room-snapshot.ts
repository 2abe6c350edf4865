/** What of a room moves to another node: everything but its media and its clients' connections. */
import {
  count,
  flag,
  integer,
  json,
  limited,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
  type Shape,
} from '@bloom/actors';
import { type BacklogText, backlogText } from './room-webhooks.js';
import type { NamedConfig, PeerPermissions } from '../room-service.js';
import { type ComponentType, MAX_ORIGINS } from '../component-schemas.js';
import { callProgress } from './call-progress.js';
import type { ComponentProgress, StreamedSegment, StreamProgress } from './component-kind.js';
import { componentType, id, namedConfig, permissions, properties } from './view-shapes.js';

/** A track that the others know of; its client publishes it again at the new owner. */
export interface TrackSnapshot {
  trackId: string;
  kind: 'audio' | 'video';
  metadata: unknown;
  /** Set once the track's publisher has muted it, false after it has unmuted it. */
  muted?: boolean;
  /** Set once the backend has muted the track, false after it has unmuted it. */
  blocked?: boolean;
}

export interface PeerSnapshot {
  id: string;
  enableSimulcast: boolean;
  /** Set by the client. */
  metadata: unknown;
  /** Set by the backend; null = none. */
  serverMetadata: unknown;
  /** Absent: the backend has set none. */
  permissions?: PeerPermissions;
  isGuest: boolean;
  /** False for an agent or a recorder. */
  counts: boolean;
  /** The backend has been told that the peer is connected, and not yet that it is not. */
  connected: boolean;
  /** The client has joined the room. */
  joined: boolean;
  /** Milliseconds left until the disconnected peer is removed; null = no limit. */
  awayMs: number | null;
  tracks: readonly TrackSnapshot[];
}

export interface ComponentSnapshot {
  id: string;
  type: ComponentType;
  /** What the API's caller gave, secrets included. */
  options: Record<string, unknown>;
  properties: Record<string, unknown>;
  /** Endpoints chosen through the API. */
  origins: readonly string[];
  tracks: readonly Pick<TrackSnapshot, 'trackId' | 'kind' | 'metadata'>[];
  progress: ComponentProgress;
}

/** An invitation whose uses are counted. */
export interface CountedInvitation {
  id: string;
  count: number;
  /** Unix milliseconds. */
  expiresAt: number;
}

export interface RoomSnapshot {
  config: NamedConfig;
  peers: readonly PeerSnapshot[];
  /** Absent: none. */
  components?: readonly ComponentSnapshot[];
  invitations: readonly CountedInvitation[];
  /** Milliseconds left until the room ends for lack of peers; null = no limit. */
  peerlessMs: number | null;
  /** Events that the webhook receiver has not got. Absent: none. */
  webhooks?: BacklogText;
}

/** Longest snapshot as JSON, in characters. A larger room stays where it is. */
export const MAX_SNAPSHOT = 4 * 1024 * 1024;
/** Maximum number of peers of a room that moves. */
const MAX_PEERS = 10_000;
/** Maximum number of components. */
const MAX_COMPONENTS = 1_000;
/** Maximum number of tracks of each. */
const MAX_TRACKS = 1_000;
/** Equals the number of invitations that a room counts. */
const MAX_INVITATIONS = 10_000;

const track: Shape<TrackSnapshot> = object({
  trackId: id,
  kind: oneOf(['audio', 'video']),
  metadata: json,
  muted: optional(flag),
  blocked: optional(flag),
} satisfies Record<keyof TrackSnapshot, unknown>);

const peer: Shape<PeerSnapshot> = object({
  id,
  enableSimulcast: flag,
  metadata: json,
  serverMetadata: json,
  permissions: optional(permissions),
  isGuest: flag,
  counts: flag,
  connected: flag,
  joined: flag,
  awayMs: nullable(count),
  tracks: list(track, MAX_TRACKS),
} satisfies Record<keyof PeerSnapshot, unknown>);

/** Maximum number of segments of a stream, and of parts of each. */
const MAX_SEGMENTS = 8;
const MAX_PARTS = 16;
/** Maximum size of the segments of a stream, which the taker holds in memory. */
export const MAX_STREAM_BYTES = 4 * 1024 * 1024;

/** Maximum number of segments and of headers that a stream has had: decades. */
const MAX_NUMBER = 1_000_000_000;
const MAX_FRAMES = 1_000;
/** The latest date. */
const MAX_DATE_MS = 8_640_000_000_000_000;

const segment: Shape<StreamedSegment> = object({
  header: integer(0, MAX_NUMBER),
  begins: flag,
  startedAtMs: integer(0, MAX_DATE_MS),
  parts: list(object({ frames: integer(0, MAX_FRAMES), independent: flag, bytes: count }), MAX_PARTS),
} satisfies Record<keyof StreamedSegment, unknown>);

const isWhole = ({ next, segments }: StreamProgress): boolean => {
  const bytes = segments.reduce((sum, { parts }) => parts.reduce((more, part) => more + part.bytes, sum), 0);

  return segments.length > 0 && segments.length <= next && bytes <= MAX_STREAM_BYTES;
};

const stream: Shape<StreamProgress> = limited(
  object({
    // Becomes part of the names of files.
    track: limited(text(40), (name) => /^main(-[a-z0-9]+)?$/.test(name), 'the name of a track'),
    // Becomes part of the playlist.
    codecs: limited(text(100), (codecs) => /^[\w.,]*$/.test(codecs), 'codecs in RFC 6381 form'),
    next: integer(0, MAX_NUMBER),
    segments: list(segment, MAX_SEGMENTS),
  } satisfies Record<keyof StreamProgress, unknown>),
  isWhole,
  `the last segments of a stream, of at most ${MAX_STREAM_BYTES} bytes`,
);

const progress: Shape<ComponentProgress> = object({
  positionMs: optional(count),
  part: optional(text(100)),
  paused: optional(flag),
  atMs: optional(count),
  stream: optional(stream),
  call: optional(callProgress),
  playable: optional(flag),
} satisfies Record<keyof ComponentProgress, unknown>);

const component: Shape<ComponentSnapshot> = object({
  id,
  type: componentType,
  options: properties,
  properties,
  origins: list(id, MAX_ORIGINS),
  tracks: list(object({ trackId: id, kind: oneOf(['audio', 'video']), metadata: json }), MAX_TRACKS),
  progress,
} satisfies Record<keyof ComponentSnapshot, unknown>);

const invitation: Shape<CountedInvitation> = object({
  id: text(100),
  count,
  expiresAt: count,
} satisfies Record<keyof CountedInvitation, unknown>);

/** A list without two items of one id: the second would displace the first, which nobody would end. */
function distinct<T extends { id: string }>(shape: Shape<T>, most: number): Shape<T[]> {
  const isDistinct = (items: T[]): boolean => new Set(items.map(({ id: one }) => one)).size === items.length;

  return limited(list(shape, most), isDistinct, 'a list of different ids');
}

export const roomSnapshot: Shape<RoomSnapshot> = object({
  config: namedConfig,
  peers: distinct(peer, MAX_PEERS),
  components: optional(distinct(component, MAX_COMPONENTS)),
  invitations: list(invitation, MAX_INVITATIONS),
  peerlessMs: nullable(count),
  webhooks: optional(backlogText),
} satisfies Record<keyof RoomSnapshot, unknown>);
