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
  /** The client's own address (for a relayed path the one it reaches the relay from). */
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
   * One authentic RTP packet, decrypted in place: `buffer[start, end)`. The buffer is not reused afterwards, so views
   * may be kept.
   */
  onRtp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** One authentic compound RTCP packet, decrypted in place. */
  onRtcp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** A pair was nominated with the credentials of this generation, for the first time. */
  onIceConnected(generation: number): void;
  /** SRTP is up: packets may be sent. */
  onDtlsConnected(): void;
  /** Fatal for this transport alone; a sentence fit for a close frame. Called at most once. */
  onFailed(reason: string): void;
  /** No authenticated check for 30 s. Called again only after checks had come back. */
  onSilent(): void;
  /** Checks have come back. */
  onActive?(): void;
}

/** `buffer[start, end)` is one packet; it must be read at once, and nothing may be thrown. */
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
  /** Where sealed packets leave, on the path of the moment. One object for the transport's whole life. */
  readonly sink: DatagramSink;

  /** Shows every SRTP packet that comes or goes, with its header in the clear, until undefined is set. */
  watchPackets(watcher: PacketWatcher | undefined): void;
  /** Accepts checks for these credentials from now on, and those of the generation before until the new pair is nominated. */
  negotiate(parameters: TransportParameters): void;
  /**
   * Seals one RTP packet and sends it: for what is rare. An SSRC goes either this way or through a `PacketSealer`, never
   * both. False when there is no SRTP or no path yet (it is dropped).
   */
  sendRtp(packet: Buffer): boolean;
  /** Seals one RTCP compound and sends it. False when there is no SRTP or no path yet (it is dropped). */
  sendRtcp(compound: Buffer): boolean;
  /** Idempotent. Sends close_notify, frees allocations, timers and table entries. */
  close(): void;
}

export interface MediaPortOptions {
  /** Address the UDP socket binds to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenAddress: string;
  /** The first free port of the range is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Address clients reach us at (`JF_WEBRTC_TURN_IP`). */
  advertisedAddress: string;
  certificate: DtlsCertificate;
  /** Shared by all ports of an engine, so that a challenge answered by another thread holds; 32 bytes. Random by default. */
  nonceSecret?: Buffer;
  /** Milliseconds since the epoch that never go back; the same for all threads. */
  clock?: () => number;
  /** Clients that get a socket of their own on the port's number at most; 0 for none. They are there on Linux only. */
  maxClientSockets?: number;
  /** A slot that a `sink` had kept because the kernel's buffer was full is free again: `PacketSealer.release`. */
  onSlotFree?(slot: number): void;
}

/** One UDP port of one media worker with everything behind it. Made by `openMediaPort`. */
export interface MediaPort extends RelayRoute {
  readonly address: string;
  readonly port: number;
  openTransport(options: PeerTransportOptions): PeerTransport;
  /** Whether a relay client with this username belongs here. */
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
  /** Datagrams that were thrown away, by reason. */
  dropped: Readonly<Record<DropReason, number>>;
}
