import type { PeerRelay, VideoCodec } from '@bloom/rooms';

/** What a viewer watches: a peer or component, a track, or whoever is speaking. */
export type WatchedSource =
  | { type: 'endpoint'; endpointId: string }
  | { type: 'track'; trackId: string }
  | { type: 'speaker' };

/** What a client requests with its offer. */
export type SessionRole = { type: 'publish' } | { type: 'watch'; source: WatchedSource };

/** Requests to a client's session, as JSON. They come from cluster nodes, never directly from a client. */
export type SessionRequest =
  | { type: 'offer'; role: SessionRole; sdp: string }
  /** `etag` null = any (RFC 9725, section 4.3.3); `ice` null = candidates only. */
  | { type: 'update'; etag: string | null; ice: { ufrag: string; pwd: string } | null };

/** Answers of a session, as JSON: one to each request, in order. */
export type SessionAnswer =
  | { type: 'answer'; sdp: string; etag: string; iceServer: PeerRelay }
  | { type: 'unchanged' }
  | { type: 'restarted'; fragment: string; etag: string }
  | { type: 'stale'; etag: string }
  | { type: 'tooManyRestarts' }
  | { type: 'refused'; code: 'INVALID_OFFER' | 'NO_CODEC'; reason: string };

/** The limits that a room sets. */
export interface RoomRules {
  videoCodec: VideoCodec | null;
  /** The component that takes every track published in the room, and which not all codecs suit. */
  recorder?: 'HLS stream' | 'recording' | undefined;
}
