/**
 * The seam between the control plane and the media plane.
 *
 * Everything here is plain data that survives a structured clone: the same interface is served in process and by a
 * media worker behind a message port. The control plane owns SDP (see `@bloom/webrtc`), ids, SSRCs of outbound slots
 * and ICE credentials; the media plane owns sockets, DTLS, SRTP, packets and what is derived from packets.
 */

import type { CodecName } from '@bloom/rtp';
import type { ChannelName } from '@bloom/webrtc';
import type { FeedOptions, MediaFeed, MediaTap, TapOptions, TrackKind } from './media-frames.js';
import type { ConnectionQuality, MediaReport } from './media-state.js';
import type { WorkerChoice, WorkerSample } from './worker-choice.js';

/** Wire names of a track's encodings. A track without simulcast has the single variant `h`. */
export type Variant = 'l' | 'm' | 'h';

/** One codec as negotiated on one m-line; payload types are those of the client that owns the m-line. */
export interface NegotiatedCodec {
  name: CodecName;
  payloadType: number;
  clockRate: number;
  /** Payload type of the RTX stream (RFC 4588), if negotiated. */
  rtxPayloadType?: number;
  /** Payload type of packets with redundancy (RFC 2198), if negotiated. */
  redPayloadType?: number;
  /** Agreed RTCP feedback of this codec: `nack`, `nack pli`, `ccm fir`, `transport-cc`. */
  feedback: readonly string[];
}

/** Header extension ids (1..14) of one m-line; absent = not negotiated. */
export interface ExtensionIds {
  mid?: number;
  rid?: number;
  repairedRid?: number;
  transportCc?: number;
  audioLevel?: number;
  /** The dependency descriptor. */
  dependencies?: number;
}

/** A track that the client of this transport publishes on one m-line. */
export interface InboundTrack {
  trackId: string;
  kind: TrackKind;
  mid: string;
  codec: NegotiatedCodec;
  extensions: ExtensionIds;
  /** Signalled SSRCs of a non-simulcast sender; simulcast streams are recognised by mid and rid. */
  ssrc?: number;
  rtxSsrc?: number;
  /** Offered rids in offer order; empty for non-simulcast, where the only variant is `h`. */
  rids: readonly Variant[];
  /**
   * Names on the wire, one for each of `rids`; absent if they are the same. Without simulcast: the only encoding to
   * accept from a client that may send several.
   */
  wireRids?: readonly string[];
  /**
   * True if no other m-line on which the client may send has these payload types. They then identify streams that name
   * neither a known SSRC nor a mid (RFC 9143 section 9.2).
   */
  hasOwnPayloadTypes?: boolean;
  /** Highest expected bitrate of each variant, bits per second. */
  bitratesBps: Partial<Record<Variant, number>>;
  /** Value of the client's `a=fmtp` for the codec. */
  formatParameters?: string;
  /** A shared screen, which sends nothing while it does not change. */
  still?: true;
  /**
   * A second encoding of the client's track with the same `trackId`, in another codec. Slots in that codec get it; it
   * is sent only while there are any (`fallbackWanted`).
   */
  fallback?: true;
  /** The client stops encodings that nobody needs, so `layersNeeded` is reported, and their silence is no fault. */
  stopsUnneeded?: true;
}

/**
 * One m-line from the server to the client. A track with a new SSRC is a new stream. One with the SSRC of the previous
 * track continues its stream, from its first keyframe on.
 */
export interface OutboundSlot {
  mid: string;
  kind: TrackKind;
  ssrc: number;
  rtxSsrc: number;
  codec: NegotiatedCodec;
  extensions: ExtensionIds;
  /** Track to send here, from any transport or component of the same room. */
  trackId: string;
  /** Name in the answer's `a=ssrc` lines, shared by one publisher's tracks. Default: the publisher's peer id. */
  cname?: string;
}

/** The outcome of one offer/answer cycle. It replaces the previous one completely: anything it omits is removed. */
export interface TransportNegotiation {
  /** Rises by one with each cycle of the transport; events quote it. */
  generation: number;
  ice: { localUfrag: string; localPwd: string; remoteUfrag: string; remotePwd: string };
  /** Certificate fingerprint of the client (`a=fingerprint`), upper-case hex with colons. */
  fingerprint: { algorithm: string; value: string };
  /** The client is the DTLS server (`a=setup:passive`). */
  passive?: boolean;
  inbound: readonly InboundTrack[];
  /** Slots of this answer. New ones start to flow once the cycle has ended (ICE nominated). */
  outbound: readonly OutboundSlot[];
  /**
   * Present if the client has data channels. True: messages have a header and go to other clients. A list: the client
   * has channels with these labels, whose messages are reported as `dataPacket`. `opens`: the same for channels that
   * the server opens.
   */
  data?: true | readonly string[] | { opens: readonly ChannelName[] };
  /** A cycle of the connection that `openReceiver` has opened. */
  receiver?: true;
}

/** Why the server closed a data channel; the wire string of `dataChannelClosed.reason`. */
export type DataCloseReason = 'too_large' | 'too_many' | 'bad_label' | 'backlog' | 'protocol';

/** Why a subscriber's variant changed; the wire string of `encodingSwitched.reason`. */
export type SwitchReason = 'low_bandwidth' | 'encoding_inactive' | 'other';

/** Why a client's RTP packet is dropped; also the name of its counter in `EngineStats.dropped`. */
export type RtpDropCause =
  /** Its payload type belongs to several m-lines, and neither its SSRC nor a mid tells which. */
  | 'unknown_ssrc'
  /** Its m-line publishes nothing. */
  | 'unpublished'
  /** It belongs to a removed track, or repairs a replaced source. */
  | 'ended'
  /** Its payload type is not in the answer. */
  | 'unexpected_payload'
  /** It names no encoding in the answer, or lacks the rid of a simulcast track. */
  | 'unknown_rid'
  /** Its SSRC is one of too many that take turns as the source of one encoding. */
  | 'ssrc_changes'
  | 'malformed_media'
  | 'oversized';

/** Also failures of SRTP: of the integrity check, and SSRCs beyond those that one client may use. */
export type MediaDropCause = RtpDropCause | 'unauthenticated' | 'too_many_streams';

/** Events of one client's media, which reach its session unchanged. */
export type ClientMediaEvent =
  /** The pair was nominated with the credentials of this generation. */
  | { type: 'iceConnected'; peerId: string; generation: number }
  | { type: 'dtlsConnected'; peerId: string }
  | { type: 'encodingSwitched'; peerId: string; trackId: string; variant: Variant; reason: SwitchReason }
  /**
   * The state of an audio track changed, for everybody; with `peerId`, the current state for this new subscriber only.
   */
  | { type: 'voiceActivity'; trackId: string; status: 'speech' | 'silence'; peerId?: string }
  /**
   * Estimate of what this client can receive, bits per second. Sent at most once a second, and only on a change above 5
   * %.
   */
  | { type: 'bandwidthEstimation'; peerId: string; estimationBps: number }
  /** Whether the fallback of this client's track has subscribers; at first it has none. */
  | { type: 'fallbackWanted'; peerId: string; trackId: string; wanted: boolean }
  /**
   * The highest variant that anybody needs of the client's simulcast track; null = nobody needs any. Initially all are
   * needed. A higher one is reported at once, a lower one after 5 s.
   */
  | { type: 'layersNeeded'; peerId: string; trackId: string; highest: Variant | null }
  /** The client sent a message on a channel without headers. */
  | { type: 'dataPacket'; peerId: string; label: string; data: Uint8Array }
  /** The server closed one of the client's channels because of a limit. */
  | { type: 'dataChannelClosed'; peerId: string; label: string; reason: DataCloseReason };

/** Events that the room acts on. */
type RoomEvent =
  /**
   * Fatal only for this transport: fingerprint mismatch, DTLS alert, internal error. `reason` is fit for a close frame.
   */
  | { type: 'transportFailed'; peerId: string; reason: string }
  /** The worker of this transport has ended while others of the room still run. The client may connect again. */
  | { type: 'transportLost'; peerId: string; reason: string }
  /** `false`: no authenticated STUN check for 30 s. `true`: media returned after that. */
  | { type: 'transportSilent'; peerId: string }
  /** Pictures of a track or its fallback are missing, or return; muted tracks and shared screens need not send any. */
  | { type: 'trackStalled'; trackId: string; stalled: boolean; fallback?: true | undefined }
  /** How well this client's media flows has changed, at most every 5 s; reported after `watchQuality`. */
  | { type: 'connectionQuality'; peerId: string; quality: ConnectionQuality }
  /** The state of this client's media changed, or its problem did. */
  | { type: 'mediaState'; peerId: string; media: MediaReport }
  /** The H.264 track has B-frames, which receivers show in the wrong order; reported once. */
  | { type: 'bFrames'; trackId: string }
  /** The H.264 track's key pictures lack parameter sets, which its offer does not announce either; reported once. */
  | { type: 'bareKeyframes'; trackId: string }
  /** The client keeps sending packets that are dropped; reported once for each cause and track. */
  | { type: 'mediaDropped'; peerId: string; cause: MediaDropCause; trackId: string | undefined; packets: number }
  /** Whether the client can receive the backend's messages on a data channel has changed. */
  | { type: 'messageChannel'; peerId: string; open: boolean }
  /** The client sent a message on a label of `setDataEvents`. An empty `to` means everybody. */
  | { type: 'dataMessage'; peerId: string; label: string; to: string[]; data: string | Uint8Array }
  /** The worker with all transports of the room has ended, and everything in the room is lost. */
  | { type: 'roomFailed'; reason: string };

/** Set in events of a connection that `MediaRoom.openReceiver` has opened. */
export interface OfReceiver {
  receiver?: true;
}

/** Events of a room's media plane. Events of one peer's transport carry its number: see `MediaRoom.isCurrent`. */
export type MediaRoomEvent = (ClientMediaEvent | RoomEvent) & OfReceiver & { transport?: number };

/** Where a client reaches its transport: both the relay address announced for UDP and the host candidate. */
export interface MediaEndpoint {
  /** Number of the transport's media worker; 0 if media runs in the main thread. */
  worker?: number;
  /** Advertised address (`JF_WEBRTC_TURN_IP`). */
  address: string;
  /** The address of the other family, if there is one. */
  secondAddress?: string;
  /** Addresses of this machine, for clients on it. */
  moreAddresses?: readonly string[];
  port: number;
  /** TURN over TCP port, if configured. */
  tcpPort?: number;
  /** TURN over TLS, if configured. The host is the name in the certificate. */
  tls?: { host: string; port: number };
  /** SHA-256 fingerprint of the engine's certificate. */
  fingerprint: { algorithm: 'sha-256'; value: string };
}

export interface RelayCredentials {
  username: string;
  password: string;
}

/** What one peer's client may send and receive, whatever it negotiates. */
export interface MediaPermissions {
  audio: boolean;
  video: boolean;
  /** Messages on data channels. */
  data: boolean;
  subscribe: boolean;
}

/**
 * The control plane's orders for a room's media. Commands run in order and have no answer; one for a peer or track that
 * has left lost a race and is ignored.
 */
export type MediaCommand =
  /** `peerId` is the subscriber. */
  | { type: 'setTargetVariant'; peerId: string; trackId: string; variant: Variant }
  /** Stops a track on its way to this subscriber, or resumes it; a picture returns with its next keyframe. */
  | { type: 'setTrackPaused'; peerId: string; trackId: string; paused: boolean }
  /** Leaves out temporal layers, so that no more pictures per second flow to this subscriber; null = no limit. */
  | { type: 'setMaxFrameRate'; peerId: string; trackId: string; framesPerSecond: number | null }
  /**
   * Withholds a track from this subscriber with the next packet, on this and all later transports of the subscriber, or
   * lets it flow again.
   */
  | { type: 'setTrackWithheld'; peerId: string; trackId: string; withheld: boolean }
  /** `peerId` is the publisher, here and below. */
  | { type: 'setTrackBitrates'; peerId: string; trackId: string; bitratesBps: Partial<Record<Variant, number>> }
  | { type: 'setTrackMuted'; peerId: string; trackId: string; muted: boolean }
  /**
   * Takes effect with the next packet, on this and all later transports of the peer. Tracks that it may no longer
   * publish are removed; if permitted again, they return with the next negotiation. Everything is permitted until the
   * first command.
   */
  | { type: 'setPermissions'; peerId: string; permissions: MediaPermissions }
  /** Withholds a track of the peer's current transport from all its subscribers, or lets it flow again. */
  | { type: 'setTrackBlocked'; peerId: string; trackId: string; blocked: boolean }
  /** Removes a track of the peer's current transport, which cannot publish under this id again. */
  | { type: 'removeTrack'; peerId: string; trackId: string }
  /** Sets the labels of data channels whose messages are reported as `dataMessage`; initially none. */
  | { type: 'setDataEvents'; labels: readonly string[] }
  /** Lets `connectionQuality` be reported from now on. */
  | { type: 'watchQuality' }
  /** Sends a message to these clients, on their channels without headers; dropped for those that have none. */
  | { type: 'sendPacket'; peerIds: readonly string[]; label: string; data: Uint8Array }
  /** Sends a message of the backend to a client that reported `messageChannel`; dropped if the channel is closed. */
  | { type: 'sendMessage'; peerId: string; text: string };

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
  kind: TrackKind;
  variant: Variant;
  active: boolean;
  codec: string;
  /** Set for the second encoding of a track. */
  fallback?: true;
  rtx: { packets: number; bytes: number };
  /** Lost packets that later ones repeated. */
  recovered: number;
  jitterMs: number;
}
/** The highest layers that flow, and that the publisher sends; 0 is the lowest. */
export interface FlowingLayers {
  spatial: number;
  temporal: number;
  maxSpatial: number;
  maxTemporal: number;
}
export interface OutboundTrackStats extends StreamStats {
  trackId: string;
  codec: string;
  /** Variant that currently flows; absent before the first media. */
  variant?: Variant;
  target?: Variant;
  /** Set while the subscriber has paused the track, or may not receive it. */
  paused?: true;
  /** What flows of a stream with layers; absent for other streams. */
  layers?: FlowingLayers;
  /** Why the variant or the layers were chosen. */
  reason: SwitchReason;
  paddingPackets: number;
  paddingBytes: number;
  retransmitted: number;
  /** Packets that repeated earlier ones (RFC 2198). */
  redundant: number;
  roundTripMs?: number;
  /** Packets counted by our sender reports. */
  rtcpPacketsSent: number;
}
/** One data channel of a peer. */
export interface ChannelStats {
  label: string;
  openedBy: 'client' | 'server';
  ordered: boolean;
  /** At most one of these limits is set; a reliable channel has none. */
  maxRetransmits?: number;
  maxLifetimeMs?: number;
}
export interface TransportStats {
  peerId: string;
  iceState: 'new' | 'connected' | 'silent';
  /** `closed`: by the client, after it was connected. */
  dtlsState: 'new' | 'connecting' | 'connected' | 'closed' | 'failed';
  media: MediaReport;
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
  /** Dropped packets of the client by cause and track, unless there are none; without a track, they belong to none. */
  inboundDropped?: readonly { cause: MediaDropCause; trackId: string | undefined; packets: number }[];
  /** Present once the client has negotiated data channels. */
  data?: { waitingBytes: number; channels: readonly ChannelStats[] };
}
export interface RoomMediaStats {
  roomId: string;
  transports: readonly TransportStats[];
}

/** RTP packets of one transport, in the form that `readCapture` reads. */
export interface CapturedPackets {
  notes: Uint8Array;
  /** Number of packets so far that did not fit between two reads. */
  dropped: number;
}

/** Time, direction and RTP header of one packet, never its payload. */
export interface CapturedPacket {
  /** Milliseconds since the epoch, with fractions. */
  atMs: number;
  direction: 'in' | 'out';
  /** Fixed part, contributing sources and extension. */
  header: Uint8Array;
  /** Length of the whole packet, bytes. */
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
  /** Packets passed from one media worker to another. */
  packetsCrossed: number;
  /** Client messages on data channels, and deliveries, which include messages of the backend. */
  dataMessagesReceived: number;
  dataMessagesSent: number;
  /** Dropped datagrams by reason (`malformed`, `replayed`, `unauthenticated`, `unknown_source`, ...). */
  dropped: Readonly<Record<string, number>>;
}

/** Totals that are still being summed up. */
export type EngineTotals = EngineStats & { dropped: Record<string, number> };

export function emptyEngineStats(): EngineTotals {
  return {
    rooms: 0,
    transports: 0,
    bytesReceived: 0,
    bytesSent: 0,
    packetsReceived: 0,
    packetsSent: 0,
    packetsForwarded: 0,
    packetsCrossed: 0,
    dataMessagesReceived: 0,
    dataMessagesSent: 0,
    dropped: {},
  };
}

/**
 * The media of one room. Calls run in order; one for a peer or track that has left lost a race and is ignored, unless
 * it returns a promise, which rejects with `MediaError` code `NO_TRANSPORT`.
 */
export interface MediaRoom {
  readonly roomId: string;
  /**
   * Opens the peer's transport and returns where its client reaches it. The relay credentials are accepted there until
   * `closeTransport`. The peer's previous transport ends. `at`: an endpoint that the client has been told already.
   */
  openTransport(peerId: string, relay: RelayCredentials, options?: { at?: MediaEndpoint }): MediaEndpoint;
  /**
   * Opens a second transport of a peer that has one, at the same endpoint, for a client that receives on a connection
   * of its own. Tracks and packets for the client flow there. It has the same relay user, and ends with the first one.
   */
  openReceiver(peerId: string): void;
  /** Returns where the peer's transport is reached; undefined if it has none. */
  endpointOf(peerId: string): MediaEndpoint | undefined;
  /** Returns why the peer's transport is on its media worker; undefined if it has none. */
  choiceOf(peerId: string): WorkerChoice | undefined;
  /** Resolves once the media plane accepts packets for the new credentials; send the answer after that. */
  negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void>;
  /**
   * Resolves with the transport's last counters, or undefined if there was none or its worker has ended. Never rejects.
   */
  closeTransport(peerId: string): Promise<TransportStats | undefined>;
  /**
   * Returns false for events of a transport that has since been closed or replaced. Events come from another thread and
   * wait in mailboxes, so the peer they name may have a new connection by then.
   */
  isCurrent(event: MediaRoomEvent): boolean;
  do(command: MediaCommand): void;
  /** Publishes a track of a component. A taken id keeps its first owner. */
  openFeed(options: FeedOptions): MediaFeed;
  /** Delivers a track to a component. */
  openTap<C extends CodecName>(options: TapOptions<C>): MediaTap;
  stats(): Promise<RoomMediaStats>;
  /**
   * Resolves with the RTP headers of a peer's packets since the last call, for debugging, or undefined if the peer has
   * no transport. The first call starts the capture; it ends with the transport, with `end`, or after 5 s without a
   * call.
   */
  capturePackets(peerId: string, end?: boolean): Promise<CapturedPackets | undefined>;
  /** Closes every transport of the room. Idempotent. */
  close(): Promise<void>;
}

/** `cpu` and `heap` (allocations by function) start a profile; `stop` returns it as text for DevTools. */
export type ProfileAction = 'cpu' | 'heap' | 'stop' | 'cancel';

export interface MediaEngine {
  /** False while no media worker is up, when a room would have to wait for one. */
  readonly takesRooms: boolean;
  /** Media workers that ended and were replaced. */
  readonly workerRestarts: number;
  /**
   * Returns the share of time that each media worker was busy since the last call, 0 to 1; empty without worker
   * threads.
   */
  workersBusy(): number[];
  /** Returns the loads by which workers are chosen at this moment, of those that can take transports. */
  workerSamples(): WorkerSample[];
  /** Opens a room on the least busy worker; its transports may go to others later. */
  openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom>;
  stats(): Promise<EngineStats>;
  /**
   * Profiles a media worker, counted from 1. Rejects with `MediaError` code `CLOSED` if there is no such thread:
   * without worker threads the media runs in the main thread.
   */
  profileWorker(worker: number, action: ProfileAction): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Returns `S1T2 of S2T2`: spatial and temporal layers that flow, and that the publisher sends. */
export function layersText({ spatial, temporal, maxSpatial, maxTemporal }: FlowingLayers): string {
  return `S${spatial}T${temporal} of S${maxSpatial}T${maxTemporal}`;
}
