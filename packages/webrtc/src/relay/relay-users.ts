import { createHash } from 'node:crypto';
import type { Allocation } from './allocation.js';

/** Whoever the data of a user's allocations is for: in this server always the ICE agent and DTLS of the same peer. */
export interface RelayOwner {
  /** One datagram that the client sent to us through its allocation. The view is the owner's. */
  onRelayed(allocation: Allocation, payload: Buffer, nowMs: number): void;
  onAllocationGone(allocation: Allocation): void;
  /** True for the allocation that carries the media now: it is never given up to make room for another. */
  isInUse(allocation: Allocation): boolean;
}

export interface RelayUserEntry {
  readonly username: string;
  /** Key of MESSAGE-INTEGRITY: MD5(username ":" realm ":" password), RFC 8489 section 9.2.2. */
  readonly key: Buffer;
  readonly owner: RelayOwner;
  readonly allocations: Set<Allocation>;
}

export function longTermKey(username: string, realm: string, password: string): Buffer {
  return createHash('md5').update(`${username}:${realm}:${password}`).digest();
}
