import type { TrackInfo } from '@bloom/protocol';
import type { ConnectionQuality, MediaRoomEvent } from '@bloom/sfu';
import { Allowance } from '@bloom/time';
import type { PeerPermissions, PeerView, RoomMessage, TrackView } from '../room-service.js';
import type { PeerConnection, PeerRef } from './peer-messages.js';
import type { Endpoint, EndpointTrack, KnownTrack } from './peer-session.js';
import { defaultPermissions } from './permissions.js';

/** Connections of a peer: each one costs its room a handshake and every other participant two notifications. */
const CONNECTIONS = { burst: 30, perSecond: 1 };

/** A client that was connected when its room moved to this node. */
export interface Expected {
  /** It had joined, so its next join is no news to the backend if its metadata is the same. */
  joined: boolean;
  /** Tracks that it has not published again, by id. */
  readonly tracks: Map<string, KnownTrack>;
  /** Messages from the backend, for when it has joined. */
  messages?: RoomMessage[];
}

interface KnownEndpoint {
  readonly tracks: ReadonlyMap<string, EndpointTrack>;
  expected?: Pick<Expected, 'tracks'> | undefined;
}

/** A room's record of one peer. */
export interface PeerRecord {
  readonly id: string;
  readonly ref: PeerRef;
  /** The peer's socket, while it has one. */
  connection: PeerConnection | undefined;
  /** The node of a LiveKit client's socket has ended, and the client may resume through another. */
  socketLost: boolean;
  /** The backend knows the peer as connected. Also true while the peer of a moved room is expected back. */
  announced: boolean;
  /** What the client had at the room's former node, until it has it here or is no longer expected to. */
  expected: Expected | undefined;
  /** Accept simulcast from the client. */
  readonly enableSimulcast: boolean;
  /** Connections that the peer may still open. */
  readonly connections: Allowance;
  /** Number of the connection on which the client left the room; it may rejoin on it. */
  leftOn: number | undefined;
  /** The client has sent `connect`, so the peer is visible to the others. */
  joined: boolean;
  /** What its latest client is, as the client's session says; undefined before the first join. */
  client: string | undefined;
  /** The peer has joined but only watches, so the others do not see it. */
  hidden: boolean;
  /** Name by which publishers let the peer receive their tracks. */
  name: string | undefined;
  /** The peer receives every track, whatever the publishers say. */
  exempt: boolean;
  /** Its client opens a second connection when the room moves. */
  moves: boolean;
  /** Who may receive the peer's tracks; undefined = all. */
  audience: ReadonlyMap<string, ReadonlySet<string> | 'all'> | undefined;
  /** Ids of the tracks that the media plane withholds from the peer. */
  readonly withheld: Set<string>;
  /** Metadata set by the client. Survives disconnects, as do the next two fields. */
  metadata: unknown;
  /** Metadata set by the backend; null = none. */
  serverMetadata: unknown;
  /** Undefined = the backend has set none, so everything is permitted. */
  permissions: PeerPermissions | undefined;
  /** True if the peer came with an invitation, so that nobody else would remove it. */
  readonly isGuest: boolean;
  /** False for an agent or a recorder, which neither takes a place in the room nor keeps it. */
  readonly counts: boolean;
  /** Tracks that the backend has muted (true) or unmuted (false). */
  readonly moderated: Map<string, boolean>;
  readonly tracks: Map<string, EndpointTrack>;
  /** The current transport has reported that the client accepts the backend's messages on a data channel. */
  messageChannel: MediaRoomEvent | undefined;
  /** How well the media of each of the client's connections flows, and that of the worst. */
  qualities: Partial<Record<'first' | 'receiver', ConnectionQuality>>;
  quality: ConnectionQuality | undefined;
  view: PeerView | undefined;
}

/** Worst first. */
const QUALITIES = ['lost', 'poor', 'good', 'excellent'] as const satisfies readonly ConnectionQuality[];

export function worstQuality(qualities: readonly ConnectionQuality[]): ConnectionQuality | undefined {
  return QUALITIES.find((quality) => qualities.includes(quality));
}

export function newPeer({
  id,
  ref,
  metadata,
  permissions,
  enableSimulcast = true,
  isGuest = false,
  counts = true,
}: {
  id: string;
  ref: PeerRef;
  /** Metadata set by the backend. */
  metadata: unknown;
  permissions: PeerPermissions | undefined;
  enableSimulcast?: boolean;
  isGuest?: boolean;
  counts?: boolean;
}): PeerRecord {
  return {
    id,
    ref,
    connection: undefined,
    socketLost: false,
    announced: false,
    expected: undefined,
    enableSimulcast,
    connections: new Allowance(CONNECTIONS),
    leftOn: undefined,
    joined: false,
    client: undefined,
    hidden: false,
    name: undefined,
    exempt: false,
    moves: false,
    audience: undefined,
    withheld: new Set(),
    metadata: null,
    serverMetadata: metadata,
    permissions,
    isGuest,
    counts,
    moderated: new Map(),
    tracks: new Map(),
    messageChannel: undefined,
    qualities: {},
    quality: undefined,
    view: undefined,
  };
}

export function permissionsOf({ permissions = defaultPermissions }: PeerRecord): PeerPermissions {
  return permissions;
}

/** Returns the metadata that others see: the client's, combined with the backend's if there is any. */
export function shownMetadata(peer: PeerRecord): unknown {
  const own = permissionsOf(peer).metadata ? peer.metadata : null;

  return peer.serverMetadata === null ? own : { peer: own, server: peer.serverMetadata };
}

/** Marks metadata of a client alone that looks like the backend's part, because it has a field `server` of its own. */
export function claims(peer: PeerRecord): { claimsServer?: true } {
  const shown = shownMetadata(peer);
  const isClaim = peer.serverMetadata === null && typeof shown === 'object' && shown !== null && 'server' in shown;

  return isClaim ? { claimsServer: true } : {};
}

/** Returns the tracks that an endpoint publishes or is expected to publish again. */
export function knownTracks({ tracks, expected }: KnownEndpoint): KnownTrack[] {
  return [...(expected?.tracks.values() ?? []), ...tracks.values()];
}

/** Returns the peer as the API shows it. Returns the same object until `view` is reset. */
export function peerView(peer: PeerRecord): PeerView {
  peer.view ??= {
    id: peer.id,
    type: 'webrtc',
    status: peer.announced ? 'connected' : 'disconnected',
    tracks: knownTracks(peer).map((track) => trackView(peer, track)),
    metadata: shownMetadata(peer),
    ...(peer.permissions === undefined ? {} : { permissions: peer.permissions }),
  };

  return peer.view;
}

/** Returns the peer as the sessions of the others see it. */
export function peerEndpoint(peer: PeerRecord): Endpoint {
  const { id, quality, client } = peer;
  const tracks = [...peer.tracks.values()];
  const known = { ...(client === undefined ? {} : { client }), ...(quality === undefined ? {} : { quality }) };

  return { id, type: 'webrtc', metadata: shownMetadata(peer), ...claims(peer), ...known, tracks };
}

/** Returns the track as the API shows it: muted by its publisher or the backend, once either has used muting. */
export function trackView({ moderated }: PeerRecord, track: KnownTrack): TrackView {
  if (track.muted === undefined && !moderated.has(track.trackId)) return trackInfo(track);
  const muted = moderated.get(track.trackId) === true || track.muted?.publisher === true;

  return { ...trackInfo(track), muted };
}

export function trackInfo({ trackId, kind, metadata }: KnownTrack): TrackInfo & TrackView {
  return { id: trackId, type: kind, metadata };
}
