/**
 * What the media plane offers to the forwarding layer: one {@link MediaPort} per worker, one {@link PeerTransport} per
 * peer. All calls are synchronous and cheap; nothing here allocates per packet but what the socket call needs.
 */

import type { DtlsCertificate } from '../dtls/certificate.js';
import type { DtlsState } from '../dtls/dtls-session.js';
import type { DropReason } from '../drops.js';
import type { RelayRoute } from '../relay/relay-stream.js';
import type { DatagramSink } from '../srtp/datagram-sink.js';
import type { SrtpSendSession } from '../srtp/send-session.js';

export interface RelayUser {
  /** `<unix time>:<peer id>`. */
  username: string;
  /** base64(HMAC-SHA1(secret, username)). */
  password: string;
}

export interface IceCredentials {
  localUfrag: string;
  localPwd: string;
  remoteUfrag: string;
  remotePwd: string;
}

/** What one offer/answer cycle changes for the transport. */
export interface TransportParameters {
  /** Rises by one with each cycle. */
  generation: number;
  ice: IceCredentials;
  /** `a=fingerprint` of the client; hex with colons, any case. */
  fingerprint: { algorithm: string; value: string };
}

export type IceState = 'new' | 'connected' | 'silent' | 'closed';

/** Where packets to the client go now. */
export interface PathState {
  ice: IceState;
  dtls: DtlsState;
  /** Generation whose pair is nominated; 0 before the first nomination. */
  generation: number;
  relayed: boolean;
  protocol: 'udp' | 'tcp';
  /** The client's own address; for a relayed path the one it reaches the relay from. */
  remoteAddress?: string;
  remotePort?: number;
}

/** Counters of one transport; all rise monotonically. Bytes are those of the datagram's payload. */
export interface TransportCounters {
  packetsReceived: number;
  bytesReceived: number;
  packetsSent: number;
  bytesSent: number;
  bindingRequestsReceived: number;
  bindingResponsesSent: number;
}

/**
 * Callbacks of one transport. They run inside the receive path (or the port's timer) and must not throw; a throw is
 * counted as `handler_error` and, for the media callbacks, fails this transport alone.
 */
export interface PeerTransportHandlers {
  /**
   * Takes one authentic RTP packet, decrypted in place: `buffer[start, end)`. The buffer is not reused, so views may be kept.
   */
  onRtp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** Takes one authentic compound RTCP packet, decrypted in place. */
  onRtcp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** Called when a pair was nominated with the credentials of this generation for the first time. */
  onIceConnected(generation: number): void;
  /** Called when SRTP is up: packets may be sent. */
  onDtlsConnected(): void;
  /** Called at most once, when this transport has failed; `reason` is a sentence fit for a close frame. */
  onFailed(reason: string): void;
  /** Called after 30 s without an authenticated check; again only after `onActive`. */
  onSilent(): void;
  /** Called when checks resume. */
  onActive?(): void;
  /** Takes the plaintext of one DTLS record with data, off the packet path. Without it such records are dropped. */
  onData?(plain: Buffer): void;
}

/** Takes one packet, `buffer[start, end)`. It must read it at once and must not throw. */
export type PacketWatcher = (direction: 'in' | 'out', buffer: Buffer, start: number, end: number) => void;

export interface PeerTransportOptions {
  id: string;
  /** Accepted by the relay until the transport is closed. */
  relay: RelayUser;
  handlers: PeerTransportHandlers;
}

export interface PeerTransport {
  readonly id: string;
  readonly pathState: PathState;
  readonly counters: Readonly<TransportCounters>;
  /** Keys for what we send, from `onDtlsConnected` on; RTP is sealed with them by the worker's `PacketSealer`. */
  readonly sendSession: SrtpSendSession | undefined;
  /** Sends sealed packets on the current path. The same object for the transport's whole life. */
  readonly sink: DatagramSink;

  /** Shows every SRTP packet in either direction, its header in the clear, to the watcher; undefined ends it. */
  watchPackets(watcher: PacketWatcher | undefined): void;
  /** Accepts checks for these credentials from now on, and those of the generation before until the new pair is nominated. */
  negotiate(parameters: TransportParameters): void;
  /**
   * Seals and sends one RTP packet; for rare packets. An SSRC uses either this or a `PacketSealer`, never both. Returns false
   * when the packet was dropped because there is no SRTP or no path yet.
   */
  sendRtp(packet: Buffer): boolean;
  /** Seals and sends one RTCP compound. Returns false when it was dropped because there is no SRTP or no path yet. */
  sendRtcp(compound: Buffer): boolean;
  /** Sends one DTLS record with data, at most 1,280 bytes. Returns false when there is no DTLS association. */
  sendData(plain: Buffer): boolean;
  /** Does a step of the work of data channels in a later turn of the event loop. Returns false when too many wait. */
  inTurn(step: () => void): boolean;
  /** Sends close_notify and frees allocations, timers and table entries. Idempotent. */
  close(): void;
}

export interface MediaPortOptions {
  /** Address the UDP socket binds to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenAddress: string;
  /** An address of the other family that has the same port. The first one is IPv4 or IPv6 only then. */
  secondListenAddress?: string;
  /** The first free port of the range is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Address clients reach us at (`JF_WEBRTC_TURN_IP`), also that of all relay allocations. */
  advertisedAddress: string;
  certificate: DtlsCertificate;
  /** Shared by all ports of an engine, so that a challenge of another thread is valid here; 32 bytes. Random by default. */
  nonceSecret?: Buffer;
  /** Milliseconds since the epoch; never goes back and agrees between threads. */
  clock?: () => number;
  /** Bound on clients with a socket of their own on the port's number, which only Linux allows; 0 for none. */
  maxClientSockets?: number;
  /** Called when a slot that a `sink` kept because the kernel's buffer was full is free again: `PacketSealer.release`. */
  onSlotFree?(slot: number): void;
}

/** One UDP port of one media worker with everything behind it. Made by `openMediaPort`. */
export interface MediaPort extends RelayRoute {
  readonly address: string;
  readonly port: number;
  openTransport(options: PeerTransportOptions): PeerTransport;
  /** Returns whether a relay client with this username belongs here. */
  hasRelayUser(username: string): boolean;
  stats(): MediaPortStats;
  /** Closes every transport and the socket. Idempotent. */
  close(): Promise<void>;
}

export interface MediaPortStats {
  transports: number;
  allocations: number;
  /** Clients with a socket of their own. */
  connectedClients: number;
  bytesReceived: number;
  bytesSent: number;
  packetsReceived: number;
  packetsSent: number;
  /** Dropped datagrams by reason. */
  dropped: Readonly<Record<DropReason, number>>;
}
