import type { Pid, Term } from '@bloom/etf';
import type { Log, LogFields } from '@bloom/log';
import type { AnyRef, ActorRef } from './ref.js';
import type { MessageOf, Protocol, ReplyOf } from './protocol.js';
import type { Shapes } from './shape.js';

/** Why an actor ended. */
export type StopReason = 'normal' | 'crashed';

/** Notification of a watcher, exactly once per monitor. */
export interface Down {
  ref: AnyRef;
  /** `noprocess`: it had ended before it could be watched. `noconnection`: its node is not connected. */
  reason: StopReason | 'noprocess' | 'noconnection';
  /** The error of its handler when it crashed; a `RemoteFault` when that was on another node. */
  error?: unknown;
}

/** What happens to an actor whose handler threw. */
export type FaultDecision = 'stop' | 'restart' | 'escalate';

export interface Fault {
  ref: AnyRef;
  error: unknown;
  /** Type of the message whose handler threw. */
  messageType: string;
  /** Restarts so far, this one not included. */
  restarts: number;
}

export interface MailboxPolicy<P extends Protocol> {
  /** Messages waiting at most, default 10,000; essential ones are counted but always taken. */
  limit?: number;
  /** Message types that must not be lost; their senders are bounded otherwise. Timers and `Down` are always accepted. */
  essential?: readonly (keyof P & string)[] | 'all';
  /** Called with each message that a full mailbox did not take: a sender on another node does not learn of it. Must not throw. */
  onRefused?: (message: MessageOf<P>) => void;
}

/** A reply that comes later; the actor handles other messages meanwhile. */
export class Later<T> {
  constructor(readonly promise: Promise<T>) {}
}

/** Answers the call when the promise settles; a rejection reaches the caller as CRASHED and is no fault. */
export function later<T>(promise: Promise<T>): Later<T> {
  return new Later(promise);
}

export interface SpawnOptions<P extends Protocol> {
  /** One path segment, unique among the living children of its parent; generated when absent. */
  name?: string;
  /** One more path segment between parent and name, to keep kinds of children apart. */
  folder?: string;
  /** Fields of every log line that the actor writes or that is written about it. */
  logFields?: LogFields;
  mailbox?: MailboxPolicy<P>;
  /** The parent's decision on a fault of this child. Default `stop`, also when the function throws. */
  supervise?: FaultDecision | ((fault: Fault) => FaultDecision);
  /** More restarts than this within `restartWindowMs` stop the actor. Default 3 in 60 s. */
  maxRestarts?: number;
  restartWindowMs?: number;
  /** Never ended by a fault: it is restarted instead, and pauses after more restarts than that. Overrides `supervise`. */
  permanent?: boolean;
}

/** Gives an actor's code access to its system. Valid for one incarnation: after a restart `init` gets a new one. */
export interface ActorContext<P extends Protocol> {
  readonly self: ActorRef<P>;
  /** Logger whose lines carry the id of the request. */
  readonly log: Log;
  /**
   * Id of the request that the message belongs to; casts and calls carry it on. The context of a handler keeps it
   * permanently, also after an `await` and in work that outlives the handler. The context of `init` has the id of the
   * handler that is running, and none after its first `await`.
   */
  readonly requestId: string | undefined;
  /** Runs `work` on behalf of that request: for code that holds the context of `init`, after an `await`. */
  inRequest<T>(work: () => T): T;
  /** Monotonic milliseconds by the system's clock, for durations. */
  now(): number;
  /** Unix milliseconds by the system's clock. */
  wall(): number;
  cast<Q extends Protocol>(target: ActorRef<Q> | string, message: MessageOf<Q>): boolean;
  call<Q extends Protocol, K extends keyof Q & string>(
    target: ActorRef<Q> | string,
    message: MessageOf<Q, K>,
    timeoutMs?: number,
  ): Promise<ReplyOf<Q, K>>;
  spawn<Q extends Protocol, S>(behaviour: Behaviour<Q, S>, options?: SpawnOptions<Q>): ActorRef<Q>;
  /** Delivers the message to this mailbox when the target ends. The returned function ends the watch. */
  monitor(target: AnyRef, toMessage: (down: Down) => MessageOf<P>): () => void;
  /** Starts or restarts the timer of that name. The message of a timer that was cleared or restarted never arrives. */
  setTimer(name: string, ms: number, message: MessageOf<P>): void;
  clearTimer(name: string): void;
  /** Ends this actor after the current message. */
  stop(): void;
  /** Begins to end another actor without waiting for it. */
  end(target: AnyRef): void;
}

/** A term from Erlang, as opposed to a message of the actor's protocol. */
export type TermMessage =
  /** `gen_server:call`; the handler's result is the reply. */
  | { readonly kind: 'call'; readonly term: Term; readonly from: Pid; readonly node: string }
  /** `gen_server:cast` and plain messages (`Pid ! Term`). */
  | { readonly kind: 'cast' | 'info'; readonly term: Term; readonly node: string }
  /** A linked process ended, when the behaviour traps exits. */
  | { readonly kind: 'exit'; readonly term: Term; readonly from: Pid; readonly node: string };

/** Defines an actor: its initial state and a handler for each message. Handlers change the state in place. */
export interface Behaviour<P extends Protocol, S> {
  /** Kind of actor, for the log and the listing. */
  readonly kind: string;
  init(context: ActorContext<P>): S;
  readonly handlers: {
    readonly [K in keyof P & string]: (
      state: S,
      message: MessageOf<P, K>,
      context: ActorContext<P>,
    ) => ReplyOf<P, K> | Promise<ReplyOf<P, K>> | Later<Awaited<ReplyOf<P, K>>>;
  };
  /**
   * The messages that actors of other nodes may send. Without it, and without `onTerm`, the actor cannot be registered or
   * sent to another node.
   */
  readonly shapes?: Shapes<P>;
  /** True for an actor that other nodes may end by an exit signal or the end of a link. */
  readonly endable?: boolean;
  /** Handles terms from Erlang. Without it, the actor understands only the messages of its protocol. */
  onTerm?(
    state: S,
    message: TermMessage,
    context: ActorContext<P>,
  ): Term | void | Promise<Term | void> | Later<Term | void>;
  /** With it, the end of a linked process is a message to `onTerm` instead of the end of this actor. */
  readonly trapsExits?: boolean;
  /**
   * Returns the state as operators may see it: plain data, without tokens, passwords and keys. Called between turns or
   * while a handler waits; must not change anything. Without it the state is not shown.
   */
  inspect?(state: S): unknown;
  /** Runs once when the actor ends, after its children have ended. Must not rely on the state after `crashed`. */
  onStop?(state: S, end: { reason: StopReason; error?: unknown }): void | Promise<void>;
}

// The runtime carries any behaviour; types are checked at `spawn`.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyBehaviour = Behaviour<any, any>;
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyContext = ActorContext<any>;
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyOptions = SpawnOptions<any>;
