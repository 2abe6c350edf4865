import type { TrackInfo } from '@bloom/protocol';
import type { PeerView, TrackView } from '../room-service.js';
import type { PeerRef, SocketRef } from './peer-messages.js';
import type { Endpoint, EndpointTrack } from './peer-session.js';

/** A room's record of one peer. */
export interface PeerRecord {
  readonly id: string;
  readonly ref: PeerRef;
  /** Its socket, while it has one. */
  connection: { number: number; socket: SocketRef } | undefined;
  /** Its client has sent `connect`: it is visible to the others. */
  joined: boolean;
  /** Survives disconnects. */
  metadata: unknown;
  readonly tracks: Map<string, EndpointTrack>;
  view: PeerView | undefined;
}

export function newPeer(id: string, ref: PeerRef): PeerRecord {
  return { id, ref, connection: undefined, joined: false, metadata: null, tracks: new Map(), view: undefined };
}

/** Returns the peer as the API shows it: the same object until `view` is reset. */
export function peerView(peer: PeerRecord): PeerView {
  peer.view ??= {
    id: peer.id,
    type: 'webrtc',
    status: peer.connection === undefined ? 'disconnected' : 'connected',
    tracks: [...peer.tracks.values()].map(trackInfo),
    metadata: peer.metadata,
  };

  return peer.view;
}

/** Returns the peer as the sessions of the others see it. */
export function peerEndpoint(peer: PeerRecord): Endpoint {
  return { id: peer.id, type: 'webrtc', metadata: peer.metadata, tracks: [...peer.tracks.values()] };
}

export function trackInfo({ trackId, kind, metadata }: EndpointTrack): TrackInfo & TrackView {
  return { id: trackId, type: kind, metadata };
}
