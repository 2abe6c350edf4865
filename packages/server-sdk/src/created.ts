// What calls that create something return.
import type { Peer, Room } from './types.js';

/** A new room and the node that owns it. */
export interface CreatedRoom {
  room: Room;
  /** `host[:port][/path]` of the node that owns the room. Every node serves it, this one directly. */
  address: string;
}

/** A new peer, and how its client connects. */
export interface CreatedPeer {
  peer: Peer;
  /** Opens the client's peer websocket. Valid for 24 hours, or `ttl`. */
  token: string;
  /** Address to which the client connects, without a scheme. */
  websocketUrl: string;
  /** Address to which a client without an SDK publishes by WHIP, with the same token. */
  whipUrl: string;
  /** Address from which a client without an SDK watches by WHEP, with the same token. */
  whepUrl: string;
}

/** What a person who only watches needs. */
export interface Viewer {
  /** Opens the stream of the room, and its recordings, in the header `authorization: Bearer <token>`. */
  token: string;
  /** Playlist of the stream for players that cannot send headers, with the token in its path. */
  hlsUrl: string;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** An invitation to a room. */
export interface Invitation {
  token: string;
  /** Page for guests, with the token after the `#`; null if the server serves no page. */
  url: string | null;
  /** Unix milliseconds. */
  expiresAt: number;
}
