import { createHash } from 'node:crypto';
import { CHANNEL_DATA_HEADER } from './channel-data.js';
import type { ClientFlow } from './client-flow.js';

/** Default lifetime, and its upper bound (RFC 8656 section 7). */
export const DEFAULT_LIFETIME_S = 600;
export const MAX_LIFETIME_S = 3600;
/** RFC 8656 sections 9 and 12. */
export const PERMISSION_LIFETIME_MS = 300_000;
export const CHANNEL_LIFETIME_MS = 600_000;

/** Receives the data of a user's allocations; in this server always the ICE agent and DTLS of the same peer. */
export interface RelayOwner {
  /** Takes one datagram that the client sent to us through its allocation. The owner may keep the view. */
  onRelayed(allocation: Allocation, payload: Buffer, nowMs: number): void;
  onAllocationGone(allocation: Allocation): void;
  /** Returns true for the allocation that currently carries media: it is never freed to make room for another. */
  isInUse(allocation: Allocation): boolean;
}

export interface RelayUserEntry {
  readonly username: string;
  /** Key of MESSAGE-INTEGRITY: MD5(username ":" realm ":" password), RFC 8489 section 9.2.2. */
  readonly key: Buffer;
  /** The peer's transport; a client with two connections has two, which share the user. Never empty. */
  readonly owners: RelayOwner[];
  readonly allocations: Set<Allocation>;
}

export function longTermKey(username: string, realm: string, password: string): Buffer {
  return createHash('md5').update(`${username}:${realm}:${password}`).digest();
}

export interface AllocationOptions {
  readonly user: RelayUserEntry;
  readonly flow: ClientFlow;
  readonly transactionId: Buffer;
  readonly nowMs: number;
  readonly lifetimeS: number;
}

/**
 * A client's allocation (RFC 8656 section 3.2). Its only reachable peer is this server, so it has at most one
 * permission and one channel.
 */
export class Allocation {
  readonly user: RelayUserEntry;
  readonly flow: ClientFlow;
  /** The transport that it belongs to, once a check has told; only kept for a user with several. */
  owner: RelayOwner | undefined;
  /** Transaction id of the Allocate request, which identifies retransmissions. */
  readonly transactionId: Buffer;
  expiresAtMs: number;
  permissionUntilMs = 0;
  /** Bound channel number, 0 for none; the relay's sweep clears it. */
  channel = 0;
  channelUntilMs = 0;
  /** Time at which data last passed through it. */
  activeAtMs: number;

  constructor({ user, flow, transactionId, nowMs, lifetimeS }: AllocationOptions) {
    this.user = user;
    this.flow = flow;
    this.transactionId = transactionId;
    this.activeAtMs = nowMs;
    this.expiresAtMs = nowMs + lifetimeS * 1000;
  }

  isPermitted(nowMs: number): boolean {
    return nowMs < this.permissionUntilMs;
  }

  /** Bytes that the relay needs in front of a packet to the client. */
  get headroom(): number {
    return this.channel === 0 ? 0 : CHANNEL_DATA_HEADER;
  }
}

/** One 5-tuple as seen by the relay. The port keeps these, and may forget one without an allocation. */
export interface RelayClient {
  readonly flow: ClientFlow;
  allocation: Allocation | undefined;
}
