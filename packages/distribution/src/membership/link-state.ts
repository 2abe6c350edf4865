/** What one node knows of its connections. All durations are milliseconds. */
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
   * `up`: connected. `dialling`: an attempt is under way. `waiting`: the next one is planned. `down`: known, and nobody
   * dials it from here.
   */
  readonly state: 'up' | 'dialling' | 'waiting' | 'down';
  /** null: not connected, or it has not said yet what it is. */
  readonly kind: NodeKind | null;
  /** From the configuration: dialled for ever. */
  readonly seed: boolean;
  /** How long it has been connected, or has not. */
  readonly sinceMs: number;
  /** Whether we dialled; null without connection. */
  readonly dialled: boolean | null;
  /** Failed attempts in a row. */
  readonly attempts: number;
  readonly nextAttemptInMs: number | null;
  /** Remaining time of a cut. */
  readonly cutForMs: number | null;
  readonly lastFailure: LinkFailure | null;
  /** Of the connection that is up. */
  readonly traffic: (Readonly<LinkCounters> & { readonly pendingBytes: number }) | null;
}

/**
 * What a node noticed of the members. `split`: the connection is gone although the node may well live. `healed`: it is
 * back, and the node had been alive all the time. Who sees whom takes asking every node.
 */
export interface ClusterEvent {
  /** Since the epoch. */
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

/** For each node the events strictly alternate; `nodedown` comes after the last message over that connection. */
export interface NodeListener {
  nodeup?(event: NodeUp): void;
  nodedown?(event: NodeDown): void;
}
