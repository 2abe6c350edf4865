/**
 * What the media plane offers to the forwarding layer: one {@link MediaPort} per worker, one {@link PeerTransport} per
 * peer. All calls are synchronous and cheap; nothing here allocates per packet but what the socket call needs.
 */

import type { DtlsCertificate } from '../dtls/certificate.js';
import type { DropReason } from './drops.js';

/**
 * Bytes that must be free *in front of* every datagram given to {@link PeerTransport.sendDatagram}: the ChannelData
 * header of a relayed path is written there, so the packet itself is never copied.
 */
export const DATAGRAM_HEADROOM = 4;

/** Bytes that must be free *behind* every packet given to `sendRtp` and `sendRtcp` (SRTCP index 4 + tag 10, padding 2). */
export const DATAGRAM_TAILROOM = 16;

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
export type DtlsState = 'new' | 'connecting' | 'connected' | 'failed' | 'closed';

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
   * One authentic RTP packet, decrypted in place: `buffer[0, length)`. The buffer is this call's own until the handler
   * returns and is not reused afterwards, so views may be kept.
   */
  onRtp(buffer: Buffer, length: number, nowMs: number): void;
  /** One authentic compound RTCP packet, decrypted in place. */
  onRtcp(buffer: Buffer, length: number, nowMs: number): void;
  /** A pair was nominated with the credentials of this generation, for the first time. */
  onIceConnected(generation: number): void;
  /** SRTP is up: packets may be sent. */
  onDtlsConnected(): void;
  /** Fatal for this transport alone; a sentence fit for a close frame. Called at most once. */
  onFailed(reason: string): void;
  /** No authenticated check for 30 s. Called again only after checks had come back. */
  onSilent(): void;
}

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

  /** Accepts checks for these credentials from now on, and those of the generation before until the new pair is nominated. */
  negotiate(parameters: TransportParameters): void;
  /**
   * Protects `buffer[offset, offset + length)` in place and sends it. Needs {@link DATAGRAM_HEADROOM} bytes before and
   * {@link DATAGRAM_TAILROOM} behind. False when there is no SRTP or no path yet (the packet is dropped).
   */
  sendRtp(buffer: Buffer, offset: number, length: number): boolean;
  sendRtcp(buffer: Buffer, offset: number, length: number): boolean;
  /**
   * Sends an already protected packet on the current path: the fan-out's way. Overwrites up to
   * {@link DATAGRAM_HEADROOM} bytes before `offset`. False when there is no path.
   */
  sendDatagram(buffer: Buffer, offset: number, length: number): boolean;
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
}

/** One TCP connection of a relay client, seen from the port: whole frames in, whole frames out. */
export interface RelayStream {
  /** One STUN message or ChannelData frame, without the stream's padding. */
  receive(frame: Buffer): void;
  /** The connection is gone. */
  closed(): void;
}

export interface RelayStreamOptions {
  address: string;
  port: number;
  /** Writes one frame. Returns false when the connection is so far behind that the frame was dropped. */
  send(frame: Buffer): boolean;
  /** Ends the connection. */
  close(): void;
}

/** One UDP port of one media worker with everything behind it. Made by `openMediaPort`. */
export interface MediaPort {
  readonly address: string;
  readonly port: number;
  openTransport(options: PeerTransportOptions): PeerTransport;
  /** Attaches a relay client that came over TCP. */
  attachStream(options: RelayStreamOptions): RelayStream;
  stats(): MediaPortStats;
  /** Closes every transport and the socket. Idempotent. */
  close(): Promise<void>;
}

export interface MediaPortStats {
  transports: number;
  allocations: number;
  bytesReceived: number;
  bytesSent: number;
  packetsReceived: number;
  packetsSent: number;
  /** Datagrams that were thrown away, by reason. */
  dropped: Readonly<Record<DropReason, number>>;
}
