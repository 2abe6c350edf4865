/** What a running actor shows of itself. Times are milliseconds; those called `At` are Unix times. */
import type { AnyRef } from '../ref.js';

export interface Counters {
  /** Messages offered to the mailbox, timers' and overflowed ones included. */
  received: number;
  handled: number;
  failed: number;
  /** Messages refused because the mailbox was full. */
  overflowed: number;
  restarts: number;
  /** Casts and calls that the actor sent. */
  sent: number;
}

/** `suspended`: takes nothing out of its mailbox, by order of an operator. */
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
  /** Age of the oldest of them; null when none waits. */
  oldestMs: number | null;
  status: ActorStatus;
  /** When the status changed; for a quick idle actor that of the last measured turn, one in eight. */
  statusAt: number;
  /** Type of the message in hand. */
  current: string | null;
  /** Quantiles of the handlers' durations; null before the first message. */
  p50Ms: number | null;
  p99Ms: number | null;
  /** Sum of all durations, the one under way included; its growth is the time that the actor was busy. */
  busyMs: number;
  timers: readonly string[];
  /** Registered names. */
  names: readonly string[];
  watchers: number;
  startedAt: number;
}

/** The last error of a handler. Its texts are unmasked: they may hold secrets. */
export interface LastError {
  at: number;
  messageType: string;
  message: string;
  /** First line of the stack that names a place; null without one. */
  place: string | null;
}

/** Everything about one actor; lists are cut at 100 entries. */
export interface ActorDetails extends ActorInfo {
  /** Waiting messages by type. */
  waiting: Readonly<Record<string, number>>;
  mailbox: { readonly limit: number; readonly essential: readonly string[] | 'all' };
  supervision: {
    /** `own`: decided by a function of the parent. */
    readonly strategy: 'stop' | 'restart' | 'escalate' | 'own';
    readonly maxRestarts: number;
    readonly windowMs: number;
    /** Restarts that count in the window now. */
    readonly recent: number;
  };
  timersDue: readonly { readonly name: string; readonly dueAt: number }[];
  /** Paths of the actors that watch it, `outside` for code that is no actor, names of nodes for watchers there. */
  watchedBy: readonly string[];
  childPaths: readonly string[];
  lastError: LastError | null;
  /** When the suspension ends by itself; null without one, or without an end. */
  suspendedUntil: number | null;
  /** Messages per bucket of the duration histogram. */
  durations: readonly number[];
}

/** A message in a mailbox. */
export interface WaitingMessage {
  type: string;
  /** The message itself, not a copy: readers copy what they need immediately, bounded and redacted. */
  message: unknown;
  /** Path of the actor, name of the node, or face that sent it. */
  from: string;
  waitedMs: number;
  requestId: string | null;
}

/** Result of a behaviour's `inspect`: plain data, or why there is none. */
export type Inspected =
  | { readonly state: unknown }
  | { readonly missing: 'no such actor' | 'not offered' }
  | { readonly failed: string };

export interface TraceEvent {
  /** Start of its handling, or when it was sent; with fractions. */
  at: number;
  /** Path of the traced actor. */
  actor: string;
  /** `timer`: one of its own timers. */
  direction: 'in' | 'out' | 'timer';
  /** Path of the other actor, name of its node, a face such as `http`, or `outside`. */
  other: string;
  type: string;
  /** The message itself, not a copy: listeners copy what they need immediately, bounded and redacted. */
  message: unknown;
  /** Duration of the handler, for `in` and `timer`. */
  ranMs: number | null;
  /** Whether its handler threw. */
  failed: boolean;
  requestId: string | null;
}

export interface TraceOptions {
  /** Selects actors by path; those that start later are included. */
  match: (path: string) => boolean;
  /** Only messages of this type. */
  type?: string;
  /** Events after which the trace ends. */
  limit: number;
  /** Time after which it ends. */
  withinMs: number;
  /** Events beyond this rate are only counted. Default 500. */
  maxPerSecond?: number;
}

export interface TraceEnd {
  reason: 'limit' | 'time' | 'stopped';
  /** Events that the listener got. */
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
  /** Ends it; idempotent. */
  stop(): void;
}

/** One step of a request, as this node saw it. Clocks of nodes differ: only steps of one node compare exactly. */
export interface Hop {
  requestId: string;
  /** With fractions. */
  at: number;
  /** Path of an actor, or a face such as `http` or `notifications`. */
  where: string;
  /** Message type, or the action of the face. */
  what: string;
  /** Sender: path of an actor, name of a node, a face, or `outside`; null for a step that a face recorded. */
  from: string | null;
  /** Time in the mailbox; null for a step that a face recorded. */
  waitedMs: number | null;
  ranMs: number | null;
  failed: boolean;
}
