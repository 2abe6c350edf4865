import type { Announcement } from './announcement.js';
import type { LinkState, NodeKind } from './link-state.js';

/** The state of a node and what is planned for it. */
export type LinkPlan = Omit<LinkState, 'cutForMs' | 'traffic'>;

export interface Known {
  readonly node: string;
  seed: boolean;
  /** Learned from discovery or a member, or a former member: dialled again when lost. */
  wanted: boolean;
  /** A member when last connected, and has not left since. */
  member: boolean;
  /** Time of the next dial; undefined when none is planned. */
  dialAt: number | undefined;
  dialling: boolean;
  /** Number of consecutive failed attempts. */
  failures: number;
  /** Start of its absence, for deciding when to give up. */
  missingSince: number;
  connection:
    | {
        kind: NodeKind | undefined;
        /** Announcement in its first hello. */
        announced: Announcement | undefined;
        readonly since: number;
        readonly creation: number;
        readonly dialled: boolean;
        readonly mayBeOurs: boolean;
      }
    | undefined;
  /** Why the node is not a member although it is one of ours. */
  refusal: string | undefined;
  /** True once the node has announced that it leaves. */
  leaving: boolean;
  /** Why the last attempt failed, or why the last connection ended. */
  failure: { readonly at: number; readonly reason: string } | undefined;
  /** The name of the node that answered under this one, such as its name with its address of the other family. */
  alias: string | undefined;
}

/** Returns a node that has just been heard of. */
export function newlyKnown(node: string, now: number): Known {
  return {
    node,
    seed: false,
    wanted: false,
    member: false,
    dialAt: undefined,
    dialling: false,
    failures: 0,
    missingSince: now,
    connection: undefined,
    leaving: false,
    failure: undefined,
    alias: undefined,
    refusal: undefined,
  };
}

/** Returns the description of a node for tools. */
export function planOf(known: Known, now: number): LinkPlan {
  const { node, seed, member, connection, dialAt, dialling, failures, failure } = known;
  const lost = member ? 'member' : null;
  const announced = connection?.announced;
  return {
    node,
    seed,
    state: connection !== undefined ? 'up' : dialling ? 'dialling' : dialAt === undefined ? 'down' : 'waiting',
    kind: connection === undefined ? lost : (connection.kind ?? null),
    announced: announced === undefined ? null : { release: announced.release, protocols: announced.protocols },
    sinceMs: now - (connection?.since ?? known.missingSince),
    dialled: connection?.dialled ?? null,
    attempts: failures,
    nextAttemptInMs: dialAt === undefined ? null : Math.max(0, dialAt - now),
    lastFailure: failure === undefined ? null : { agoMs: now - failure.at, reason: failure.reason },
  };
}

/** Returns the state of a node that is unknown but cut off. */
export function unknownPlan(node: string): LinkPlan {
  const nothing = { kind: null, announced: null, dialled: null, nextAttemptInMs: null, lastFailure: null };
  return { node, seed: false, state: 'down', sinceMs: 0, attempts: 0, ...nothing };
}
