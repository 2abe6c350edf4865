/** What a node knows of its connections. All durations are in milliseconds. */
import type { Protocols } from './announcement.js';
import type { CloseReason, LinkCounters } from '../link/link.js';

/** Kind of a connected node: `tool` such as bloomctl, `foreign` such as an Erlang or C node. */
export type NodeKind = 'member' | 'tool' | 'foreign';

/** Why the last attempt to connect failed, or why the last connection ended. */
export interface LinkFailure {
  readonly agoMs: number;
  readonly reason: string;
}

export interface LinkState {
  readonly node: string;
  /**
   * `up`: connected. `dialling`: an attempt is in progress. `waiting`: the next attempt is scheduled. `down`: known,
   * but not dialled from here.
   */
  readonly state: 'up' | 'dialling' | 'waiting' | 'down';
  /** null: not known yet, or not connected. A member that was lost without leaving is still a member. */
  readonly kind: NodeKind | null;
  /** Release (null: unannounced, 0.1.0 or earlier) and protocols of a connected member; null for all others. */
  readonly announced: { readonly release: string | null; readonly protocols: Protocols } | null;
  /** True for configured nodes, which are dialled forever. */
  readonly seed: boolean;
  /** How long the node has been connected or missing. */
  readonly sinceMs: number;
  /** True when we dialled; null without a connection. */
  readonly dialled: boolean | null;
  /** Number of consecutive failed attempts. */
  readonly attempts: number;
  readonly nextAttemptInMs: number | null;
  /** Remaining time of a cut. */
  readonly cutForMs: number | null;
  readonly lastFailure: LinkFailure | null;
  /** Counters of the connection; null without one. */
  readonly traffic: (Readonly<LinkCounters> & { readonly pendingBytes: number }) | null;
}

/**
 * An event concerning a member, as this node saw it; others may differ. `split`: the connection is lost although the
 * node may still be alive. `healed`: the connection is back and the node had been alive.
 */
export interface ClusterEvent {
  /** Unix milliseconds. */
  readonly at: number;
  readonly event: 'up' | 'down' | 'split' | 'healed' | 'cut' | 'draining' | 'undrained';
  readonly node: string;
  readonly detail: string;
}

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

/** A node of ours that is disconnected and cannot be a member, because it shares no protocol version with this node. */
export interface NodeRefused {
  readonly node: string;
  /** A sentence that names both releases and what they speak. */
  readonly why: string;
  /** True when this node is the one that joins and therefore has to end. */
  readonly joins: boolean;
}

/** Events of one node strictly alternate; `nodedown` comes after the last message over that connection. */
export interface NodeListener {
  nodeup?(event: NodeUp): void;
  nodedown?(event: NodeDown): void;
  refused?(event: NodeRefused): void;
}
