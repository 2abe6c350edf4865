import { CHANNEL_DATA_HEADER } from './channel-data.js';
import type { ClientFlow } from './client-flow.js';
import type { RelayUserEntry } from './relay-users.js';

/** RFC 8656 section 7: what a client gets that asks for nothing, and the most it gets. */
export const DEFAULT_LIFETIME_S = 600;
export const MAX_LIFETIME_S = 3600;
/** RFC 8656 sections 9 and 12. */
export const PERMISSION_LIFETIME_MS = 300_000;
export const CHANNEL_LIFETIME_MS = 600_000;

/**
 * A client's allocation (RFC 8656 section 3.2). The only peer it can ever reach is ourselves, so one permission and one
 * channel is all it can hold.
 */
export class Allocation {
  expiresAtMs: number;
  permissionUntilMs = 0;
  /** Bound channel number, 0 for none; the relay's sweep resets it. */
  channel = 0;
  channelUntilMs = 0;
  /** When data last came through it. */
  activeAtMs: number;

  constructor(
    readonly user: RelayUserEntry,
    readonly flow: ClientFlow,
    /** Of the Allocate request, to know its retransmissions by. */
    readonly transactionId: Buffer,
    nowMs: number,
    lifetimeS: number,
  ) {
    this.activeAtMs = nowMs;
    this.expiresAtMs = nowMs + lifetimeS * 1000;
  }

  isPermitted(nowMs: number): boolean {
    return nowMs < this.permissionUntilMs;
  }

  /** Bytes the relay wants in front of a packet that it sends to the client. */
  get headroom(): number {
    return this.channel === 0 ? 0 : CHANNEL_DATA_HEADER;
  }
}
