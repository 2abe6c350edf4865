/** What one node knows of its connections. All durations are milliseconds. */
import type { Protocols } from './announcement.js';
import type { CloseReason, LinkCounters } from '../link/link.js';

/** What a connected node is: `tool` such as bloomctl, `foreign` a node of Erlang or C. */
export type NodeKind = 'member' | 'tool' | 'foreign';

/** Why the last attempt to connect failed, or the last connection ended. */
export interface LinkFailure {
  readonly agoMs: number;
  readonly reason: string;
}

export interface LinkState {
  readonly node: string;
  /**
   * `up`: connected. `dialling`: an attempt is under way. `waiting`: the next one is planned. `down`: known, but
   * not dialled from here.
   */
  readonly state: 'up' | 'dialling' | 'waiting' | 'down';
  /** null: not known yet, or not connected; a member that is lost, and has not left, is still one. */
  readonly kind: NodeKind | null;
  /** Release (null: unannounced, 0.1.0 or earlier) and protocols of a connected member; null for all others. */
  readonly announced: { readonly release: string | null; readonly protocols: Protocols } | null;
  /** True for nodes of the configuration, which are dialled for ever. */
  readonly seed: boolean;
  /** How long it has been connected, or missing. */
  readonly sinceMs: number;
  /** True when we dialled; null without connection. */
  readonly dialled: boolean | null;
  /** Failed attempts in a row. */
  readonly attempts: number;
  readonly nextAttemptInMs: number | null;
  /** Remaining time of a cut. */
  readonly cutForMs: number | null;
  readonly lastFailure: LinkFailure | null;
  /** Counters of the connection; null without one. */
  readonly traffic: (Readonly<LinkCounters> & { readonly pendingBytes: number }) | null;
}

/**
 * An event that a node noticed about a member. `split`: the connection is lost although the node may still live.
 * `healed`: the connection is back and the node had been alive. Only this node's view; others may differ.
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

/** A node of ours that cannot be a member, since it speaks no protocol that this node speaks. It is disconnected. */
export interface NodeRefused {
  readonly node: string;
  /** A sentence that names both releases and what they speak. */
  readonly why: string;
  /** True when this node is the one that joins, and has to end. */
  readonly joins: boolean;
}

/** Events of one node strictly alternate; `nodedown` comes after the last message over that connection. */
export interface NodeListener {
  nodeup?(event: NodeUp): void;
  nodedown?(event: NodeDown): void;
  refused?(event: NodeRefused): void;
}
