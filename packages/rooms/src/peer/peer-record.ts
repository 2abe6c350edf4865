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
  /** The peer's socket, while it has one. */
  connection: PeerConnection | undefined;
  readonly connectionRate: ConnectionRate;
  /** Number of the connection on which the client left the room; it may rejoin on it. */
  leftOn: number | undefined;
  /** The client has sent `connect`, so the peer is visible to the others. */
  joined: boolean;
  /** The peer has joined but only watches, so the others do not see it. */
  hidden: boolean;
  /** Metadata set by the client. Survives disconnects, as do the next two fields. */
  metadata: unknown;
  /** Metadata set by the backend; null = none. */
  serverMetadata: unknown;
  /** Undefined = the backend has set none, so everything is permitted. */
  permissions: PeerPermissions | undefined;
  /** Tracks that the backend has muted (true) or unmuted (false). */
  readonly moderated: Map<string, boolean>;
  readonly tracks: Map<string, EndpointTrack>;
  /** The current transport's report that the client takes the backend's messages on a data channel. */
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
  /** Metadata set by the backend. */
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

/** Returns the metadata that others see: the client's, combined with the backend's if there is any. */
export function shownMetadata(peer: PeerRecord): unknown {
  const own = permissionsOf(peer).metadata ? peer.metadata : null;

  return peer.serverMetadata === null ? own : { peer: own, server: peer.serverMetadata };
}

/** Returns the peer as the API shows it. Returns the same object until `view` is reset. */
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
