import type { ReconnectOptions } from './backoff.js';
import type { DataMessage } from './data.js';
import type { RoomClientError } from './errors.js';
import type { LocalTrack } from './local-track.js';
import type { MediaState } from './media-state.js';
import type { RemotePeer, RemoteTrack } from './remote.js';
import type { Permissions } from './signaling.js';

/** `reconnecting`: the peers and their last pictures stay unchanged. */
export type ClientState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'ended';

/** A place in a room, as the backend receives it for a new peer. */
export interface Seat {
  /** The peer's `peer_websocket_url` or `host:port`. Without `ws://` or `wss://`, the scheme follows the page. */
  readonly url: string;
  readonly token: string;
}

/** Options of `connect`. */
export interface ConnectOptions extends Seat {
  /**
   * Asks the backend for another seat when the current one is lost: its node restarted or is unreachable, its token has
   * expired, or the peer or the room was removed. Null ends the call for `reason`, as do `maxSeats` seats in a row that
   * do not last. A rejection is retried.
   */
  readonly renew?: (reason: RoomClientError) => Promise<Seat | null> | Seat | null;
  /** Any JSON, shown to the other participants. */
  readonly metadata?: unknown;
  readonly reconnect?: ReconnectOptions;
  /**
   * Encrypts what this client sends, and shows only what others have encrypted with the same key: an `Encryption` of
   * `@bloom/client/encryption` (docs/guide/encryption.md).
   */
  readonly encryption?: FrameEncryption;
}

/** What `Encryption` of `@bloom/client/encryption` does with each connection. */
export interface FrameEncryption {
  /**
   * Opens a connection that encrypts whatever it sends, and decrypts whatever it receives. `report` is called when the
   * track of an m-line cannot be decrypted, and with null when it can again.
   */
  open(
    configuration: RTCConfiguration,
    report: (mid: string, problem: 'NO_KEY' | 'NOT_ENCRYPTED' | null) => void,
  ): RTCPeerConnection;
}

/** Events of `RoomClient` with their arguments. */
export interface ClientEvents<PeerMetadata = unknown, TrackMetadata = unknown> {
  /** `state`, `peers` or `localTracks` changed. */
  changed: [];
  connected: [];
  /** The connection was lost. The next attempt follows in `delayMs`. */
  reconnecting: [attempt: number, delayMs: number];
  /** The call is over because the client left or the server ended it. */
  ended: [reason: RoomClientError];
  peerJoined: [peer: RemotePeer<PeerMetadata, TrackMetadata>];
  peerUpdated: [peer: RemotePeer<PeerMetadata, TrackMetadata>];
  peerLeft: [peer: RemotePeer<PeerMetadata, TrackMetadata>];
  trackAdded: [track: RemoteTrack<TrackMetadata>];
  /** The track's `media` is available, for the first time or after a reconnection. */
  trackReady: [track: RemoteTrack<TrackMetadata>];
  trackUpdated: [track: RemoteTrack<TrackMetadata>];
  trackRemoved: [track: RemoteTrack<TrackMetadata>];
  /** The track's `muted` changed. */
  muted: [track: RemoteTrack<TrackMetadata>];
  unmuted: [track: RemoteTrack<TrackMetadata>];
  /** The track's `stalled` changed. */
  stalled: [track: RemoteTrack<TrackMetadata>];
  resumed: [track: RemoteTrack<TrackMetadata>];
  /**
   * The server refuses this track, or no longer accepts it, because of its codec or a withdrawn permission; or the
   * browser does not send it with its options.
   */
  unpublished: [track: LocalTrack];
  /** The backend has changed what this participant may do, or the server has reported it for the first time. */
  permissionsChanged: [permissions: Permissions];
  /** A message from the backend to this client. */
  message: [topic: string, data: unknown];
  /** A message from another client. */
  data: [message: DataMessage];
  /**
   * The server closed a conversation and gives the reason (docs/reference/data-channels.md). The next message reopens
   * it.
   */
  dataClosed: [label: string, reason: string];
  /**
   * The browser plays the sound of an element passed to `watch` or `play` only after a touch: show a button, and call
   * `play` when it is pressed. It starts all blocked sounds.
   */
  audioBlocked: [play: () => void];
  /** `media` changed: packets can reach the server, no longer can, or failed to. */
  mediaStateChanged: [media: MediaState];
  /** The server's estimate of what this client can receive, in bits per second. */
  bandwidth: [bps: number];
}
