/**
 * The seam between the peer actor (this package) and the machine that speaks with the peer's client (`@bloom/signaling`).
 *
 * A session is sans-IO: inputs in, actions out, in order. It knows one client: what it has sent, what is still to be sent,
 * and the negotiation. The room actor is the truth about endpoints and tracks; the peer actor carries inputs and actions
 * between the session, the room actor, the media room, the websocket and its timers.
 */
import type {
  ClientMediaEvent,
  MediaCommand,
  MediaEndpoint,
  NegotiatedCodec,
  RelayCredentials,
  TransportNegotiation,
  TrackKind,
  Variant,
} from '@bloom/sfu';
import type { EndpointType, RoomMessage, VideoCodec } from '../room-service.js';

export type CodecName = NegotiatedCodec['name'];

/** A published track as others see it. */
export interface EndpointTrack {
  trackId: string;
  kind: TrackKind;
  codec: CodecName;
  metadata: unknown;
  /** Offered rids in offer order; empty = no simulcast. */
  encodings: readonly Variant[];
  /** Encodings that the publisher has announced as switched off; informative. */
  disabledEncodings: readonly Variant[];
  /** Tracks of one endpoint with the same id were captured together: receivers play them in step. */
  streamId?: string;
  /** The publisher sends the audio level with its packets (RFC 6464). */
  audioLevel?: boolean;
}

/** A peer that has joined, or a component. */
export interface Endpoint {
  id: string;
  type: EndpointType;
  metadata: unknown;
  tracks: readonly EndpointTrack[];
}

export type SessionInput =
  /** JSON text of one media event, as the client sent it; any garbage. For `http` the text of one request. */
  | { type: 'clientEvent'; text: string }
  /**
   * The room's answer to the action `join`: all other endpoints, at this moment. Every `join` has exactly one answer, even
   * when a `leave` came in between.
   */
  | {
      type: 'joined';
      endpoints: readonly Endpoint[];
      /** Ids of the tracks with speech at present, the newest last; absent when there are none. */
      speaking?: readonly string[];
    }
  | { type: 'endpointAdded'; endpoint: Endpoint }
  | { type: 'endpointUpdated'; endpointId: string; metadata: unknown }
  /** Its tracks are removed with it. */
  | { type: 'endpointRemoved'; endpointId: string }
  | { type: 'tracksAdded'; endpointId: string; tracks: readonly EndpointTrack[] }
  | { type: 'tracksRemoved'; endpointId: string; trackIds: readonly string[] }
  | { type: 'trackUpdated'; endpointId: string; trackId: string; metadata: unknown }
  | { type: 'encodingChanged'; endpointId: string; trackId: string; encoding: Variant; enabled: boolean }
  /** The media plane has applied the negotiation of this generation: the answer may be sent. */
  | { type: 'negotiated'; generation: number }
  /** Voice activity may come before the client receives the track; the client is notified when it does. */
  | ClientMediaEvent
  /** Replaces the kinds of tracks that the client may publish. May come before the client connects. */
  | { type: 'setPublishes'; kinds: readonly TrackKind[] }
  /** The backend has muted or unmuted a track of this client. */
  | { type: 'trackMutedByServer'; trackId: string; muted: boolean }
  /** The backend has removed a track of this client, which it may not publish again under this id. */
  | { type: 'trackRemovedByServer'; trackId: string }
  /** A message of the backend for the client. */
  | { type: 'roomMessage'; message: RoomMessage }
  | { type: 'timer'; name: SessionTimer };

export type SessionTimer = 'offer' | 'ice' | 'retry' | 'apply' | 'hold' | 'restart';

/** What a session asks of the room. */
export type PeerRequest =
  /** The client sent `connect`: make it visible; the room answers with the input `joined`. */
  | {
      type: 'join';
      metadata: unknown;
      /** The other participants do not see it: it only watches. */
      hidden?: boolean;
    }
  /** The client sent `disconnect`: as a socket loss, but the socket stays and may `connect` again. */
  | { type: 'leave' }
  | { type: 'setMetadata'; metadata: unknown }
  | { type: 'publish'; tracks: readonly EndpointTrack[] }
  | { type: 'unpublish'; trackIds: readonly string[] }
  | { type: 'setTrackMetadata'; trackId: string; metadata: unknown }
  | { type: 'setEncoding'; trackId: string; encoding: Variant; enabled: boolean }
  /** The peer's media endpoint is beyond repair: close 1011 with this reason, the peer counts as crashed. */
  | { type: 'fail'; reason: string };

export type SessionAction =
  | PeerRequest
  /** JSON text of one media event for the client. */
  | { type: 'send'; text: string }
  | { type: 'negotiate'; negotiation: TransportNegotiation }
  | { type: 'media'; command: MediaCommand }
  /** Starts or restarts a timer; it comes back as the input `timer`. */
  | { type: 'setTimer'; name: SessionTimer; ms: number }
  | { type: 'clearTimer'; name: SessionTimer }
  /** A warning for the log; never contains secrets or whole messages of the client. */
  | { type: 'warn'; event: string; detail: string };

export interface PeerSession {
  handle(input: SessionInput): readonly SessionAction[];
  /** The last offer and answer, for reports. */
  descriptions(): { offer?: string; answer?: string };
}

/** `sdk` speaks in media events over a websocket, `http` in requests (WHIP and WHEP). */
export type ClientKind = 'sdk' | 'http';

export interface PeerSessionOptions {
  peerId: string;
  client: ClientKind;
  /** Codec enforced in the room. */
  videoCodec: VideoCodec | null;
  enableSimulcast: boolean;
  /** Kinds of tracks that the client may publish. */
  publishes: readonly TrackKind[];
  endpoint: MediaEndpoint;
  relay: RelayCredentials;
  /** `n` random bytes, for ICE credentials, SSRCs and session ids. */
  randomBytes: (n: number) => Uint8Array;
}

export type CreatePeerSession = (options: PeerSessionOptions) => PeerSession;
