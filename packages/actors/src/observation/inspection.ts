/** What a running actor shows of itself. Times are in milliseconds; fields ending in `At` are Unix times. */
import type { AnyRef } from '../ref.js';

export interface Counters {
  /** Messages offered to the mailbox, including timers' and refused ones. */
  received: number;
  handled: number;
  failed: number;
  /** Messages refused because the mailbox was full. */
  overflowed: number;
  restarts: number;
  /** Casts and calls sent by the actor. */
  sent: number;
}

/** `suspended`: an operator has stopped messages from leaving its mailbox. */
export type ActorStatus = 'idle' | 'busy' | 'suspended' | 'ending';

/** One line of the listing. */
export interface ActorInfo extends Counters {
  ref: AnyRef;
  path: string;
  kind: string;
  parent: string | null;
  children: number;
  /** Messages waiting now. */
  queue: number;
  /** Age of the oldest waiting message; null if none waits. */
  oldestMs: number | null;
  status: ActorStatus;
  /** Time of the last status change; for an idle actor with quick messages, of the last measured turn, one in eight. */
  statusAt: number;
  /** Type of the message being handled. */
  current: string | null;
  /** Quantiles of handler durations; null before the first message. */
  p50Ms: number | null;
  p99Ms: number | null;
  /** Sum of all durations, including the current one; its growth is the time that the actor was busy. */
  busyMs: number;
  timers: readonly string[];
  /** Registered names. */
  names: readonly string[];
  watchers: number;
  startedAt: number;
}

/** The last error of a handler. Its texts are not masked and may contain secrets. */
export interface LastError {
  at: number;
  messageType: string;
  message: string;
  /** First line of the stack that names a place; null if there is none. */
  place: string | null;
}

/** Everything about one actor; lists are cut at 100 entries. */
export interface ActorDetails extends ActorInfo {
  /** Waiting messages by type. */
  waiting: Readonly<Record<string, number>>;
  mailbox: { readonly limit: number; readonly essential: readonly string[] | 'all' };
  supervision: {
    /** `own`: the parent decides by a function. */
    readonly strategy: 'stop' | 'restart' | 'escalate' | 'own';
    readonly maxRestarts: number;
    readonly windowMs: number;
    /** Number of restarts in the current window. */
    readonly recent: number;
  };
  timersDue: readonly { readonly name: string; readonly dueAt: number }[];
  /** Paths of the watching actors, `outside` for code that is not an actor, names of nodes for watchers there. */
  watchedBy: readonly string[];
  childPaths: readonly string[];
  lastError: LastError | null;
  /** When the suspension ends by itself; null if there is none or it has no end. */
  suspendedUntil: number | null;
  /** Messages per bucket of the duration histogram. */
  durations: readonly number[];
}

/** A message in a mailbox. */
export interface WaitingMessage {
  type: string;
  /** The message itself, not a copy: readers immediately copy what they need, bounded and redacted. */
  message: unknown;
  /** Path of the actor, name of the node, or name of the face that sent it. */
  from: string;
  waitedMs: number;
  requestId: string | null;
}

/** Result of a behaviour's `inspect`: plain data, or the reason why there is none. */
export type Inspected =
  | { readonly state: unknown }
  | { readonly missing: 'no such actor' | 'not offered' }
  | { readonly failed: string };

export interface TraceEvent {
  /** When handling began, or when the message was sent; fractional. */
  at: number;
  /** Path of the traced actor. */
  actor: string;
  /** `timer`: a timer of the actor itself. */
  direction: 'in' | 'out' | 'timer';
  /** Path of the other actor, name of its node, name of a face such as `http`, or `outside`. */
  other: string;
  type: string;
  /** The message itself, not a copy: listeners immediately copy what they need, bounded and redacted. */
  message: unknown;
  /** Duration of the handler, for `in` and `timer`. */
  ranMs: number | null;
  /** True if its handler threw. */
  failed: boolean;
  requestId: string | null;
}

export interface TraceOptions {
  /** Selects actors by path, including those that start later. */
  match: (path: string) => boolean;
  /** Reports only messages of this type. */
  type?: string;
  /** Number of events after which the trace ends. */
  limit: number;
  /** Time after which the trace ends. */
  withinMs: number;
  /** Events beyond this rate are only counted. Default 500 per second. */
  maxPerSecond?: number;
}

export interface TraceEnd {
  reason: 'limit' | 'time' | 'stopped';
  /** Events passed to the listener. */
  events: number;
  /** Events beyond the rate. */
  dropped: number;
  /** Total time spent in the listener. */
  costMs: number;
}

/** A running trace. */
export interface Trace {
  readonly events: number;
  readonly dropped: number;
  readonly costMs: number;
  /** Ends the trace. Idempotent. */
  stop(): void;
}

/** What a face did for a request. */
export interface Step {
  /** Name of the face, such as `http` or `notifications`. */
  readonly where: string;
  /** Action of the face. */
  readonly what: string;
  /** Set if the step has just ended. */
  readonly ranMs?: number | null;
}

/** One step of a request, as seen by this node. Clocks differ between nodes: only steps on one node compare exactly. */
export interface Hop {
  requestId: string;
  /** Fractional. */
  at: number;
  /** Path of an actor, or name of a face such as `http` or `notifications`. */
  where: string;
  /** Message type, or the action of the face. */
  what: string;
  /** Sender: path of an actor, name of a node, a face, or `outside`; null for a step that a face recorded. */
  from: string | null;
  /** Time in the mailbox; null for a step that a face recorded. */
  waitedMs: number | null;
  ranMs: number | null;
  failed: boolean;
  /** Further messages that the step sent for the request and that are not recorded, because they are like others. */
  omitted: number;
}
