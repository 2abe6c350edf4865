import type { Log } from '@bloom/log';
import type { Clock } from './clock.js';
import type { HandshakeFailure } from './errors.js';
import { MAX_FRAME_BYTES } from './link/frames.js';
import type { CloseReason, LinkLimits } from './link/link.js';
import type { ListenAddress } from './handshake/listener.js';
import type { NodeKind } from './membership/link-state.js';
import type { NameMode } from './handshake/names.js';
import type { ProcessTable } from './processes.js';

export interface NodeOptions {
  /** Full name, `name@host`. */
  readonly name: string;
  readonly mode: NameMode;
  /** Shared secret of the cluster, or one per peer. */
  readonly cookie: string | ((peer: string) => string);
  readonly processes?: ProcessTable;
  /** Seen by Erlang's `nodes()`; default false (hidden). */
  readonly visible?: boolean;
  /** A tool such as bloomctl: connected to members, but none; default false. */
  readonly tool?: boolean;
  /** Where to listen; `false`: dial only, nothing is registered. Default any port of 127.0.0.1. */
  readonly listen?: ListenAddress | false;
  /** The port mapper of this and all other hosts; `revive` brings a lost one back. */
  readonly mapper: { readonly port: number; readonly revive?: () => Promise<void> };
  /** Silence after which a connection is dropped, equal on all nodes. Default 60 s. */
  readonly tickTimeMs?: number;
  /** Names that may be dialled because a member told them; default all of the right kind. */
  readonly allowNode?: (node: string) => boolean;
  /** Announce Erlang nodes, too. Default false. */
  readonly announceForeign?: boolean;
  readonly limits?: Partial<NodeLimits>;
  readonly resolve?: (host: string) => Promise<string>;
  readonly clock?: Clock;
  /** Milliseconds since the epoch, for what is told to people. */
  readonly calendar?: () => number;
  readonly random?: () => number;
  readonly log: Log;
}

export interface NodeLimits extends LinkLimits {
  /** For each step of a handshake. Default 7 s. */
  readonly stepTimeoutMs: number;
  /** Connections that have not proved to know the cookie. Default 64. */
  readonly maxPending: number;
  /** Default 100. */
  readonly maxAcceptsPerSecond: number;
  /** Monitors and links per connection. Default 1,000,000. */
  readonly maxSignals: number;
  /** How long the event loop stays awake for the answer to a query; 0 never. Default 0.2 ms. */
  readonly busyWaitMs: number;
}

export const DEFAULT_LIMITS: NodeLimits = {
  maxFrameBytes: MAX_FRAME_BYTES,
  highWaterBytes: 8 * 1024 * 1024,
  overflow: 'drop',
  stepTimeoutMs: 7_000,
  maxPending: 64,
  maxAcceptsPerSecond: 100,
  maxSignals: 1_000_000,
  busyWaitMs: 0.2,
};

export interface NodeUp {
  readonly node: string;
  readonly kind: NodeKind;
  readonly creation: number;
}

export interface NodeDown {
  readonly node: string;
  readonly kind: NodeKind;
  readonly reason: CloseReason;
}

/** Per peer they strictly alternate; `nodedown` comes after the last message over that connection. */
export interface NodeListener {
  nodeup?(event: NodeUp): void;
  nodedown?(event: NodeDown): void;
}

export type NodeFilter = 'visible' | 'hidden' | 'connected' | 'members';

export interface NodeCounters {
  /** Handshakes that failed on our side, by reason. */
  readonly handshakes: Partial<Record<HandshakeFailure | 'rate', number>>;
  /** Connections that ended, by reason. */
  readonly closed: Partial<Record<CloseReason, number>>;
}
