import type { TrackInfo } from '@bloom/protocol';
import type { MediaRoomEvent } from '@bloom/sfu';
import type { PeerPermissions, PeerView, TrackView } from '../room-service.js';
import { ConnectionRate } from './connection-rate.js';
import type { PeerConnection, PeerRef } from './peer-messages.js';
import type { Endpoint, EndpointTrack } from './peer-session.js';
import { defaultPermissions } from './permissions.js';

/** A room's record of one peer. */
export interface PeerRecord {
  readonly id: string;
  readonly ref: PeerRef;
  /** Its socket, while it has one. */
  connection: PeerConnection | undefined;
  readonly connectionRate: ConnectionRate;
  /** Number of the connection on which the client has left the room and may join again. */
  leftOn: number | undefined;
  /** Its client has sent `connect`: it is visible to the others. */
  joined: boolean;
  /** The others do not see it although it has joined: it only watches. */
  hidden: boolean;
  /** Metadata of its client. Survives disconnects, as do the two below. */
  metadata: unknown;
  /** Metadata of the backend; null = none. */
  serverMetadata: unknown;
  /** Undefined = the backend has given none: everything is permitted. */
  permissions: PeerPermissions | undefined;
  /** Tracks that the backend has muted (true) or unmuted (false). */
  readonly moderated: Map<string, boolean>;
  readonly tracks: Map<string, EndpointTrack>;
  /** The report of its present transport that messages of the backend reach its client on a data channel. */
  messageChannel: MediaRoomEvent | undefined;
  view: PeerView | undefined;
}

export function newPeer({
  id,
  ref,
  metadata,
  permissions,
}: {
  id: string;
  ref: PeerRef;
  /** Set by the backend. */
  metadata: unknown;
  permissions: PeerPermissions | undefined;
}): PeerRecord {
  return {
    id,
    ref,
    connection: undefined,
    connectionRate: new ConnectionRate(),
    leftOn: undefined,
    joined: false,
    hidden: false,
    metadata: null,
    serverMetadata: metadata,
    permissions,
    moderated: new Map(),
    tracks: new Map(),
    messageChannel: undefined,
    view: undefined,
  };
}

export function permissionsOf({ permissions = defaultPermissions }: PeerRecord): PeerPermissions {
  return permissions;
}

/** Returns the metadata as others see it: that of the client, beside that of the backend if there is any. */
export function shownMetadata(peer: PeerRecord): unknown {
  const own = permissionsOf(peer).metadata ? peer.metadata : null;

  return peer.serverMetadata === null ? own : { peer: own, server: peer.serverMetadata };
}

/** Returns the peer as the API shows it: the same object until `view` is reset. */
export function peerView(peer: PeerRecord): PeerView {
  peer.view ??= {
    id: peer.id,
    type: 'webrtc',
    status: peer.connection === undefined ? 'disconnected' : 'connected',
    tracks: [...peer.tracks.values()].map((track) => trackView(peer, track)),
    metadata: shownMetadata(peer),
    ...(peer.permissions === undefined ? {} : { permissions: peer.permissions }),
  };

  return peer.view;
}

/** Returns the peer as the sessions of the others see it. */
export function peerEndpoint(peer: PeerRecord): Endpoint {
  return { id: peer.id, type: 'webrtc', metadata: shownMetadata(peer), tracks: [...peer.tracks.values()] };
}

export function trackView({ moderated }: PeerRecord, track: EndpointTrack): TrackView {
  const muted = moderated.get(track.trackId);

  return muted === undefined ? trackInfo(track) : { ...trackInfo(track), muted };
}

export function trackInfo({ trackId, kind, metadata }: EndpointTrack): TrackInfo & TrackView {
  return { id: trackId, type: kind, metadata };
}
