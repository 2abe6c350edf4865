/**
 * Interface of the media plane for the forwarding layer: one {@link MediaPort} per worker, one {@link PeerTransport}
 * per peer. All calls are synchronous and cheap, and allocate nothing per packet except what the socket call needs.
 */

import type { DtlsCertificate } from '../dtls/certificate.js';
import type { DtlsState } from '../dtls/dtls-association.js';
import type { DropReason } from '../drops.js';
import type { RelayRoute } from '../relay/relay-stream.js';
import type { DatagramSink } from '../srtp/datagram-sink.js';
import type { OpenFailureName } from '../srtp/receive-session.js';
import type { SrtpSendSession } from '../srtp/send-session.js';
import type { AdvertisedPorts } from './bind-port.js';

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

/** Transport changes made by one offer/answer cycle. */
export interface TransportParameters {
  /** Increases by one with each cycle. */
  generation: number;
  ice: IceCredentials;
  /** The client's `a=fingerprint`; hex with colons, in any case. */
  fingerprint: { algorithm: string; value: string };
  /** The client is the DTLS server (`a=setup:passive`), so we are the client. Only counts before the first hello. */
  passive?: boolean;
}

export type IceState = 'new' | 'connected' | 'silent' | 'closed';

/** Path currently used for packets to the client. */
export interface PathState {
  ice: IceState;
  dtls: DtlsState;
  /** Generation of the nominated pair; 0 before the first nomination. */
  generation: number;
  relayed: boolean;
  protocol: 'udp' | 'tcp';
  /** True inside TLS. */
  secure: boolean;
  /** The client's own address; for a relayed path, the address from which it reaches the relay. */
  remoteAddress?: string;
  remotePort?: number;
}

/** Counters of one transport, all monotonic. Bytes count the datagram payload. */
export interface TransportCounters {
  packetsReceived: number;
  bytesReceived: number;
  packetsSent: number;
  bytesSent: number;
  bindingRequestsReceived: number;
  bindingResponsesSent: number;
}

/**
 * Callbacks of one transport. They run in the receive path (or the port's timer) and must not throw. A throw is counted
 * as `handler_error`; in a media callback it also fails this transport, and no other.
 */
export interface PeerTransportHandlers {
  /** Takes one authentic RTP packet, decrypted in place: `buffer[start, end)`. Views may be kept: it is not reused. */
  onRtp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** Takes one authentic compound RTCP packet, decrypted in place. */
  onRtcp(buffer: Buffer, start: number, end: number, nowMs: number): void;
  /** Called when SRTP refuses a packet, which is counted under this reason. */
  onRefused?(reason: OpenFailureName, nowMs: number): void;
  /** Called when a pair is first nominated with the credentials of this generation. */
  onIceConnected(generation: number): void;
  /** Called when SRTP is ready and packets may be sent. */
  onDtlsConnected(): void;
  /** Called at most once, when the transport fails. `reason` is a sentence suitable for a close frame. */
  onFailed(reason: string): void;
  /** Called after 30 s without an authenticated check; called again only after `onActive`. */
  onSilent(): void;
  /** Called when checks resume. */
  onActive?(): void;
  /** Takes the plaintext of one DTLS data record, off the packet path. Without this handler it is dropped. */
  onData?(plain: Buffer): void;
}

/** Takes one packet, `buffer[start, end)`. It must read the packet synchronously and must not throw. */
export type PacketWatcher = (direction: 'in' | 'out', buffer: Buffer, start: number, end: number) => void;

export interface PeerTransportOptions {
  id: string;
  /** Relay user, accepted until the transport is closed. */
  relay: RelayUser;
  /** The user may have a transport already: this is the second one of the same client. */
  sharesRelay?: boolean;
  handlers: PeerTransportHandlers;
}

export interface PeerTransport {
  readonly id: string;
  readonly pathState: PathState;
  readonly counters: Readonly<TransportCounters>;
  /** Send keys, available from `onDtlsConnected` on; the worker's `PacketSealer` seals RTP with them. */
  readonly sendSession: SrtpSendSession | undefined;
  /** Sends sealed packets on the current path. The same object throughout the transport's lifetime. */
  readonly sink: DatagramSink;

  /** Passes every SRTP packet in either direction, with its header in the clear, to the watcher; undefined stops it. */
  watchPackets(watcher: PacketWatcher | undefined): void;
  /** Accepts checks with these credentials from now on, and with the previous ones until the new pair is nominated. */
  negotiate(parameters: TransportParameters): void;
  /**
   * Seals and sends one RTP packet; meant for rare packets. An SSRC uses either this or a `PacketSealer`, never both.
   * Returns false if the packet was dropped because SRTP or a path is missing.
   */
  sendRtp(packet: Buffer): boolean;
  /** Seals and sends one RTCP compound. Returns false if it was dropped because SRTP or a path is missing. */
  sendRtcp(compound: Buffer): boolean;
  /** Sends one DTLS data record of at most 1,280 bytes. Returns false without a DTLS association. */
  sendData(plain: Buffer): boolean;
  /** Runs a data channel step in a later turn of the event loop. Returns false when too many steps are queued. */
  inTurn(step: () => void): boolean;
  /** Sends close_notify and frees allocations, timers and table entries. Idempotent. */
  close(): void;
}

export interface MediaPortOptions {
  /** Address the UDP socket binds to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenAddress: string;
  /** Address of the other IP family on the same port. The first address is then IPv4, or IPv6 only. */
  secondListenAddress?: string;
  /** Further addresses on the same port, of either family. */
  moreListenAddresses?: readonly string[];
  /** Range of which the first free port is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Address at which clients reach us (`JF_WEBRTC_TURN_IP`), and address of all relay allocations. */
  advertisedAddress: string;
  /** Ports at which clients reach ours behind a port mapping; absent = the same. */
  advertisedPorts?: AdvertisedPorts;
  certificate: DtlsCertificate;
  /** 32-byte secret shared by an engine's ports, so that each accepts the others' challenges. Random by default. */
  nonceSecret?: Buffer;
  /** Returns milliseconds since the epoch; must be monotonic and agree between threads. */
  clock?: () => number;
  /** Bound on clients with their own socket on the port's number, which only Linux allows; 0 disables them. */
  maxClientSockets?: number;
  /** Called when a slot kept by a `sink` because the kernel's buffer was full is free again: `PacketSealer.release`. */
  onSlotFree?(slot: number): void;
}

/** One UDP port of one media worker, with all its transports. Created by `openMediaPort`. */
export interface MediaPort extends RelayRoute {
  readonly address: string;
  readonly port: number;
  openTransport(options: PeerTransportOptions): PeerTransport;
  /** Returns true if a relay user with this name belongs to this port. */
  hasRelayUser(username: string): boolean;
  stats(): MediaPortStats;
  /** Closes every transport and the socket. Idempotent. */
  close(): Promise<void>;
}

export interface MediaPortStats {
  transports: number;
  allocations: number;
  /** Clients with their own socket. */
  connectedClients: number;
  bytesReceived: number;
  bytesSent: number;
  packetsReceived: number;
  packetsSent: number;
  /** Dropped datagrams, by reason. */
  dropped: Readonly<Record<DropReason, number>>;
}
