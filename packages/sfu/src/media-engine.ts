/**
 * The seam between the control plane and the media plane.
 *
 * Everything here is plain data that survives a structured clone: the same interface is answered in process and by a
 * media worker behind a message port. The control plane owns SDP (see `@bloom/webrtc`), ids, SSRCs of outbound slots
 * and ICE credentials; the media plane owns sockets, DTLS, SRTP, packets and what is derived from packets.
 */

import type { FeedOptions, MediaFeed, MediaTap, TapOptions, TrackKind } from './media-frames.js';

/** Names of the encodings of a track on the wire. A track without simulcast has the single variant `h`. */
export type Variant = 'l' | 'm' | 'h';

/** One codec as negotiated on one m-line; payload types are those of the client that owns the m-line. */
export interface NegotiatedCodec {
  /** Lower case: `opus`, `vp8`, `h264`. */
  name: 'opus' | 'vp8' | 'h264';
  payloadType: number;
  clockRate: number;
  /** Payload type of the RTX stream (RFC 4588), when negotiated. */
  rtxPayloadType?: number;
  /** RTCP feedback that was agreed for this codec: `nack`, `nack pli`, `ccm fir`, `transport-cc`. */
  feedback: readonly string[];
}

/** Header extension ids (1..14) of one m-line; absent = not negotiated. */
export interface ExtensionIds {
  mid?: number;
  rid?: number;
  repairedRid?: number;
  transportCc?: number;
  audioLevel?: number;
}

/** A track that the client of this transport publishes on one m-line. */
export interface InboundTrack {
  trackId: string;
  kind: TrackKind;
  mid: string;
  codec: NegotiatedCodec;
  extensions: ExtensionIds;
  /** Signalled SSRCs of a non-simulcast sender; simulcast streams are learnt from mid + rid. */
  ssrc?: number;
  rtxSsrc?: number;
  /** Offered rids in offer order; empty for non-simulcast (then the only variant is `h`). */
  rids: readonly Variant[];
  /** Highest expected bitrate of each variant, bits per second. */
  bitratesBps: Partial<Record<Variant, number>>;
}

/** One m-line from the server to the client. Its SSRCs are those of the track in it: the next track in it has others. */
export interface OutboundSlot {
  mid: string;
  kind: TrackKind;
  ssrc: number;
  rtxSsrc: number;
  codec: NegotiatedCodec;
  extensions: ExtensionIds;
  /** The track that flows here, of any transport (or component) in the same room. */
  trackId: string;
  /** As in the answer's `a=ssrc` lines; the same for the tracks of one publisher. Default: the publisher's peer id. */
  cname?: string;
}

/** The outcome of one offer/answer cycle. It replaces the previous one as a whole: what is missing is gone. */
export interface TransportNegotiation {
  /** Rises by one with each cycle of the transport; events quote it. */
  generation: number;
  ice: { localUfrag: string; localPwd: string; remoteUfrag: string; remotePwd: string };
  /** Certificate fingerprint of the client (`a=fingerprint`), upper-case hex with colons. */
  fingerprint: { algorithm: string; value: string };
  inbound: readonly InboundTrack[];
  /** Slots that are live in this answer. New ones start to flow when the cycle has ended (ICE nominated). */
  outbound: readonly OutboundSlot[];
}

/** Why a subscriber's variant changed; the wire string of `encodingSwitched.reason`. */
export type SwitchReason = 'low_bandwidth' | 'encoding_inactive' | 'other';

/** What a room's media plane tells. News of one peer's transport bear its number: see `MediaRoom.isCurrent`. */
export type MediaRoomEvent = RoomNews & { transport?: number };

type RoomNews =
  /** The pair was nominated with the credentials of this generation. */
  | { type: 'iceConnected'; peerId: string; generation: number }
  | { type: 'dtlsConnected'; peerId: string }
  /** Fatal for this transport alone: fingerprint mismatch, DTLS alert, internal fault. `reason` is fit for a close frame. */
  | { type: 'transportFailed'; peerId: string; reason: string }
  /** No authenticated STUN check for 30 s, or media back after that. */
  | { type: 'transportSilent'; peerId: string }
  | { type: 'encodingSwitched'; peerId: string; trackId: string; variant: Variant; reason: SwitchReason }
  /** The state of an audio track changed; with `peerId` the present state, for this new subscriber only. */
  | { type: 'voiceActivity'; trackId: string; status: 'speech' | 'silence'; peerId?: string }
  /** What this client can receive, bits per second; at most once a second and only on change over 5 %. */
  | { type: 'bandwidthEstimation'; peerId: string; estimationBps: number }
  /** The worker of the room is gone: everything in it is lost. */
  | { type: 'roomFailed'; reason: string };

/** Where clients reach the room's worker; the relay address announced for udp and the host candidate are this very pair. */
export interface MediaEndpoint {
  /** Advertised address (`JF_WEBRTC_TURN_IP`). */
  address: string;
  port: number;
  /** TURN over TCP port, when configured. */
  tcpPort?: number;
  /** SHA-256 fingerprint of the engine's certificate. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

export interface RelayCredentials {
  username: string;
  password: string;
}

/** Counters of one stream; all rise monotonically. */
export interface StreamStats {
  ssrc: number;
  packets: number;
  bytes: number;
  markers: number;
  keyframes: number;
  lost: number;
  nacks: number;
  plis: number;
}
export interface InboundTrackStats extends StreamStats {
  trackId: string;
  variant: Variant;
  active: boolean;
  codec: string;
  rtx: { packets: number; bytes: number };
  jitterMs: number;
}
export interface OutboundTrackStats extends StreamStats {
  trackId: string;
  /** Variant that flows now; absent before the first media. */
  variant?: Variant;
  target?: Variant;
  reason: SwitchReason;
  paddingPackets: number;
  paddingBytes: number;
  retransmitted: number;
  roundTripMs?: number;
  /** Packets counted by our sender reports. */
  rtcpPacketsSent: number;
}
export interface TransportStats {
  peerId: string;
  iceState: 'new' | 'connected' | 'silent';
  dtlsState: 'new' | 'connecting' | 'connected' | 'failed';
  remoteAddress?: string;
  remotePort?: number;
  protocol: 'udp' | 'tcp';
  bytesReceived: number;
  bytesSent: number;
  packetsReceived: number;
  packetsSent: number;
  bindingRequestsReceived: number;
  bindingResponsesSent: number;
  estimationBps?: number;
  inbound: readonly InboundTrackStats[];
  outbound: readonly OutboundTrackStats[];
}
export interface RoomMediaStats {
  roomId: string;
  transports: readonly TransportStats[];
}

/** RTP packets of one transport, as `readCapture` takes them apart. */
export interface CapturedPackets {
  notes: Uint8Array;
  /** Packets so far that found no room between two readings. */
  dropped: number;
}

/** How one packet came or went, and its RTP header: never what is in it. */
export interface CapturedPacket {
  /** Milliseconds since the epoch, with fractions. */
  atMs: number;
  direction: 'in' | 'out';
  /** Fixed part, contributing sources and extension. */
  header: Uint8Array;
  /** Of the whole packet, in bytes. */
  length: number;
}

/** Totals of the engine, for metrics and for choosing a worker. */
export interface EngineStats {
  rooms: number;
  transports: number;
  bytesReceived: number;
  bytesSent: number;
  /** Datagrams, and frames of relayed connections. */
  packetsReceived: number;
  packetsSent: number;
  packetsForwarded: number;
  /** Datagrams that were thrown away, by reason (`malformed`, `replayed`, `unauthenticated`, `unknown_source`, ...). */
  dropped: Readonly<Record<string, number>>;
}

/**
 * The media of one room. All calls are commands in order; a call for a peer or track that is gone is ignored (it lost a
 * race), except where a promise is returned, which rejects with `MediaError` code `NO_TRANSPORT`.
 */
export interface MediaRoom {
  readonly roomId: string;
  readonly endpoint: MediaEndpoint;
  /** Makes the peer's transport; its relay credentials are accepted until `closeTransport`. */
  openTransport(peerId: string, relay: RelayCredentials): void;
  /** Resolves when the media plane accepts packets for the new credentials: send the answer after that. */
  negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void>;
  closeTransport(peerId: string): void;
  /**
   * False for news of a transport that has been closed or replaced since. They come from another thread and wait in
   * mailboxes; the peer they name may have a new connection by then.
   */
  isCurrent(event: MediaRoomEvent): boolean;
  setTargetVariant(peerId: string, trackId: string, variant: Variant): void;
  setTrackBitrates(trackId: string, bitratesBps: Partial<Record<Variant, number>>): void;
  setTrackMuted(trackId: string, muted: boolean): void;
  /** A component publishes a track. An id that is taken keeps its first owner. */
  openFeed(options: FeedOptions): MediaFeed;
  /** A component receives a track. */
  openTap(options: TapOptions): MediaTap;
  stats(): Promise<RoomMediaStats>;
  /**
   * The RTP headers of a peer's packets since the last call, for debugging; the first call begins. It ends when the
   * transport closes, with `end`, or when nobody has asked for 5 s. undefined: the peer has no transport.
   */
  capturePackets(peerId: string, end?: boolean): Promise<CapturedPackets | undefined>;
  /** Closes every transport of the room. Idempotent. */
  close(): Promise<void>;
}

/** `cpu` and `heap` (allocations by function) begin, `stop` gives the text that DevTools open. */
export type ProfileAction = 'cpu' | 'heap' | 'stop' | 'cancel';

export interface MediaEngine {
  /** A room is assigned to the least busy worker and lives whole on it. */
  openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom>;
  stats(): Promise<EngineStats>;
  /**
   * Profiles a media worker, counted from 1. Rejects with `MediaError` code `CLOSED` when there is no such thread: without
   * worker threads the media runs in the main thread.
   */
  profileWorker(worker: number, action: ProfileAction): Promise<string | undefined>;
  close(): Promise<void>;
}
