/**
 * The seam between the peer actor (this package) and the machine that talks to the peer's client (`@bloom/signaling`).
 *
 * A session is sans-IO: inputs in, actions out, in order. It tracks one client: what the client has sent, what is still
 * to be sent to it, and the negotiation. The room actor is the authority on endpoints and tracks; the peer actor
 * carries inputs and actions between the session, the room actor, the media room, the websocket and the session's
 * timers.
 */
import type {
  ClientMediaEvent,
  ConnectionQuality,
  MediaCommand,
  MediaEndpoint,
  NegotiatedCodec,
  OfReceiver,
  RelayCredentials,
  TransportNegotiation,
  TrackKind,
  Variant,
} from '@bloom/sfu';
import type { EndpointType, PeerPermissions, RoomMessage, VideoCodec } from '../room-service.js';

export type CodecName = NegotiatedCodec['name'];

/** Who has muted a track. Each field is set once that side has muted, and false after it has unmuted. */
export type Mutes = Readonly<Partial<Record<'publisher' | 'server', boolean>>>;

/** A published track as others see it. */
export interface EndpointTrack {
  trackId: string;
  kind: TrackKind;
  codec: CodecName;
  /** Codec of a second encoding, for receivers that lack the first; the media plane has it under the same id. */
  fallback?: CodecName;
  metadata: unknown;
  /** Offered rids in offer order; empty = no simulcast. */
  encodings: readonly Variant[];
  /** Encodings that the publisher has announced as disabled; informative. */
  disabledEncodings: readonly Variant[];
  /** Tracks of one endpoint that share this id were captured together, so receivers synchronise them. */
  streamId?: string;
  /** The publisher sends the audio level with its packets (RFC 6464). */
  audioLevel?: boolean;
  /** The publisher encrypts it end to end, so that no component can use it. */
  encrypted?: true;
  muted?: Mutes;
  /** Whether pictures are missing; absent until they first were. */
  stalled?: boolean;
  /** Whether those of the second encoding are. */
  fallbackStalled?: boolean;
  /** Set if this session's client may not receive the track; only clients with a name are shown such tracks. */
  withheld?: true;
}

/** What the backend knows of a track. */
export type KnownTrack = Pick<EndpointTrack, 'trackId' | 'kind' | 'metadata' | 'muted'>;

/** Who may receive a peer's tracks: names of receivers, each with the ids of the tracks. */
export type Audience = readonly (readonly [name: string, trackIds: readonly string[] | 'all'])[];

/** A peer that has joined, or a component. */
export interface Endpoint {
  id: string;
  type: EndpointType;
  metadata: unknown;
  /** The field `server` of the metadata comes from the peer's client, not from the backend. */
  claimsServer?: true;
  /** What its client is; see the action `join`. */
  client?: string;
  /** How well the media of its client flows, once that is known. */
  quality?: ConnectionQuality;
  tracks: readonly EndpointTrack[];
}

export type SessionInput =
  /**
   * JSON text of one media event as the client sent it, not validated. For `http` and `livekit`, the text of one
   * request.
   */
  | { type: 'clientEvent'; text: string }
  /**
   * The room's answer to the action `join`: all other endpoints at this moment. Every `join` gets exactly one answer,
   * even when a `leave` came in between.
   */
  | {
      type: 'joined';
      endpoints: readonly Endpoint[];
      /** Ids of the tracks that currently carry speech, newest last; absent when there are none. */
      speaking?: readonly string[];
    }
  | { type: 'endpointAdded'; endpoint: Endpoint }
  | { type: 'endpointUpdated'; endpointId: string; metadata: unknown; claimsServer?: true }
  /** The endpoint's tracks are removed with it. */
  | { type: 'endpointRemoved'; endpointId: string }
  | { type: 'tracksAdded'; endpointId: string; tracks: readonly EndpointTrack[] }
  | { type: 'tracksRemoved'; endpointId: string; trackIds: readonly string[] }
  | { type: 'trackUpdated'; endpointId: string; trackId: string; metadata: unknown }
  | { type: 'encodingChanged'; endpointId: string; trackId: string; encoding: Variant; enabled: boolean }
  | { type: 'trackMuted'; endpointId: string; trackId: string; muted: Mutes }
  /** `fallback`: of the second encoding. */
  | { type: 'trackStalled'; endpointId: string; trackId: string; stalled: boolean; fallback?: true }
  /** How well the media of endpoints flows, or of this client itself. Only LiveKit's clients are told. */
  | { type: 'qualitiesChanged'; qualities: readonly (readonly [endpointId: string, quality: ConnectionQuality])[] }
  /** The publisher withholds tracks from this client, which has a name, or no longer does. */
  | { type: 'tracksWithheld'; endpointId: string; trackIds: readonly string[]; withheld: boolean }
  /** The media plane has applied the negotiation of this generation, so the answer may be sent. */
  | ({ type: 'negotiated'; generation: number } & OfReceiver)
  /** Voice activity may arrive before the client receives the track; the client is then notified later. */
  | (ClientMediaEvent & OfReceiver)
  /** Replaces the kinds of tracks that the client may publish. May arrive before the client connects. */
  | { type: 'setPublishes'; kinds: readonly TrackKind[]; permissions?: PeerPermissions }
  /** The backend has set metadata of this peer; null = removed it. Only LiveKit's clients read their own. */
  | { type: 'recordSet'; metadata: unknown }
  /** The backend has set metadata of the room; null = removed it. */
  | { type: 'roomUpdated'; metadata: unknown }
  /** The backend has muted or unmuted a track of this client. */
  | { type: 'trackMutedByServer'; trackId: string; muted: boolean }
  /** The backend has removed a track of this client, which it may not publish again under this id. */
  | { type: 'trackRemovedByServer'; trackId: string }
  /** A message from the backend to the client. */
  | { type: 'roomMessage'; message: RoomMessage }
  /** The room runs at another node, and the media here flows on until the client has a connection there. */
  | { type: 'roomMoved' }
  /** Where the room goes on if its node is lost: a websocket address without scheme. */
  | { type: 'standby'; url: string }
  /** Every such client has its connection there. */
  | { type: 'othersMoved' }
  /** The node of the client's socket has ended: nothing reaches the client until it resumes through another. */
  | { type: 'socketLost' }
  | { type: 'timer'; name: SessionTimer };

export type SessionTimer = 'offer' | 'ice' | 'retry' | 'apply' | 'hold' | 'restart' | 'quality';

/** What a session requests from the room. */
export type PeerRequest =
  /** The client sent `connect`: the room makes the peer visible and answers with the input `joined`. */
  | {
      type: 'join';
      metadata: unknown;
      /** What the client is, for operators: `jellyfish`, `bloom`, `whip`, `whep`, or `livekit` and its kind. */
      client?: string;
      /** The peer only watches, so the other participants do not see it. */
      hidden?: boolean;
      /** Name by which publishers let the peer receive their tracks; absent: only those that all may receive. */
      name?: string;
      /** The peer receives every track, whatever the publishers say. */
      exempt?: boolean;
      /** The client opens a second connection when the room moves, and leaves this one afterwards. */
      moves?: boolean;
    }
  /** The client sent `disconnect`: like a socket loss, but the socket stays open and may `connect` again. */
  | { type: 'leave' }
  | { type: 'setMetadata'; metadata: unknown }
  | { type: 'publish'; tracks: readonly EndpointTrack[] }
  | { type: 'unpublish'; trackIds: readonly string[] }
  | { type: 'setTrackMetadata'; trackId: string; metadata: unknown }
  | { type: 'setEncoding'; trackId: string; encoding: Variant; enabled: boolean }
  | { type: 'setTrackMuted'; trackId: string; muted: boolean }
  /** Sets who may receive the peer's tracks, present and future ones; null = all, as after a join. */
  | { type: 'setAudience'; audience: Audience | null }
  /** The client has a connection to the node that the room has moved to. */
  | { type: 'moved' }
  /** The peer's media endpoint is beyond repair: close 1011 with this reason and count the peer as crashed. */
  | { type: 'fail'; reason: string }
  /** The client leaves for good while it has no socket, whose node would remove the peer. */
  | { type: 'end' };

export type SessionAction =
  | PeerRequest
  /** JSON text of one media event for the client. */
  | { type: 'send'; text: string }
  /** The first one with `receiver` opens the client's second connection, which has the same endpoint. */
  | { type: 'negotiate'; negotiation: TransportNegotiation }
  | { type: 'media'; command: MediaCommand }
  /** Starts or restarts a timer, which fires as the input `timer`. */
  | { type: 'setTimer'; name: SessionTimer; ms: number }
  | { type: 'clearTimer'; name: SessionTimer }
  /** A warning to log; never contains secrets or whole client messages. */
  | { type: 'warn'; event: string; detail: string };

export interface PeerSession {
  handle(input: SessionInput): readonly SessionAction[];
  /** The last offer and answer, for reports. */
  descriptions(): { offer?: string; answer?: string };
}

/**
 * `sdk` clients send media events over a websocket, `http` clients send requests (WHIP and WHEP), `livekit` clients
 * speak LiveKit's protocol.
 */
export type ClientKind = 'sdk' | 'http' | 'livekit';

export interface PeerSessionOptions {
  peerId: string;
  client: ClientKind;
  /** Video codec that the room enforces. */
  videoCodec: VideoCodec | null;
  enableSimulcast: boolean;
  /** Kinds of tracks that the client may publish. */
  publishes: readonly TrackKind[];
  /** Shown to clients that ask for it. */
  permissions?: PeerPermissions;
  endpoint: MediaEndpoint;
  relay: RelayCredentials;
  /** Returns `n` random bytes, for ICE credentials, SSRCs and session ids. */
  randomBytes: (n: number) => Uint8Array;
}

export type CreatePeerSession = (options: PeerSessionOptions) => PeerSession;
