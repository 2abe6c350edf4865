import type { Pid, Term } from '@bloom/etf';
import type { Log, LogFields } from '@bloom/log';
import type { AnyRef, ActorRef } from './ref.js';
import type { MessageOf, Protocol, ReplyOf } from './protocol.js';
import type { Shapes } from './shape.js';

/** Why an actor ended. */
export type StopReason = 'normal' | 'crashed';

/** What a watcher receives, exactly once per monitor. */
export interface Down {
  ref: AnyRef;
  /** `noprocess`: the actor ended before the watch began. `noconnection`: its node is not connected. */
  reason: StopReason | 'noprocess' | 'noconnection';
  /** The error that its handler threw, if it crashed; a `RemoteFault` if the actor ran on another node. */
  error?: unknown;
}

/** What happens to an actor whose handler threw. */
export type FaultDecision = 'stop' | 'restart' | 'escalate';

export interface Fault {
  ref: AnyRef;
  error: unknown;
  /** Type of the message whose handler threw. */
  messageType: string;
  /** Number of restarts so far, not counting this one. */
  restarts: number;
}

export interface MailboxPolicy<P extends Protocol> {
  /** Maximum number of waiting messages, default 10,000. Essential ones count towards it but are always accepted. */
  limit?: number;
  /** Message types that must not be lost; bound their senders in another way. Timers and `Down` are always accepted. */
  essential?: readonly (keyof P & string)[] | 'all';
  /** Called with each message that a full mailbox refused; a sender on another node is not notified. Must not throw. */
  onRefused?: (message: MessageOf<P>) => void;
}

/** A reply that comes later; until then the actor handles other messages. */
export class Later<T> {
  constructor(readonly promise: Promise<T>) {}
}

/** Answers the call when the promise settles. A rejection reaches the caller as CRASHED; it is not a fault. */
export function later<T>(promise: Promise<T>): Later<T> {
  return new Later(promise);
}

export interface SpawnOptions<P extends Protocol> {
  /** One path segment, unique among the parent's living children; generated if omitted. */
  name?: string;
  /** One more path segment between parent and name that separates kinds of children. */
  folder?: string;
  /** Fields of every log line by or about the actor. */
  logFields?: LogFields;
  mailbox?: MailboxPolicy<P>;
  /** The parent's decision on a fault of this child. Default `stop`, which also applies if the function throws. */
  supervise?: FaultDecision | ((fault: Fault) => FaultDecision);
  /** More restarts than this within `restartWindowMs` stop the actor. Default 3 in 60 s. */
  maxRestarts?: number;
  restartWindowMs?: number;
  /** A fault never ends this actor: it restarts, and pauses first beyond `maxRestarts`. Overrides `supervise`. */
  permanent?: boolean;
}

/** Gives an actor's code access to its system. Valid for one incarnation: after a restart `init` gets a new one. */
export interface ActorContext<P extends Protocol> {
  readonly self: ActorRef<P>;
  /** Logger whose lines carry the id of the request. */
  readonly log: Log;
  /**
   * Id of the request that the message belongs to; casts and calls pass it on. A handler's context keeps the id, even
   * after an `await` and in work that outlives the handler. The context of `init` has the id of the handler that is
   * running, and none after its first `await`.
   */
  readonly requestId: string | undefined;
  /** Runs `work` on behalf of the current request, for code that holds the context of `init` and awaits. */
  inRequest<T>(work: () => T): T;
  /** Returns monotonic milliseconds from the system's clock, for durations. */
  now(): number;
  /** Returns Unix milliseconds from the system's clock. */
  wall(): number;
  cast<Q extends Protocol>(target: ActorRef<Q> | string, message: MessageOf<Q>): boolean;
  call<Q extends Protocol, K extends keyof Q & string>(
    target: ActorRef<Q> | string,
    message: MessageOf<Q, K>,
    timeoutMs?: number,
  ): Promise<ReplyOf<Q, K>>;
  spawn<Q extends Protocol, S>(behaviour: Behaviour<Q, S>, options?: SpawnOptions<Q>): ActorRef<Q>;
  /** Delivers the message to this mailbox when the target ends. Returns the function that ends the watch. */
  monitor(target: AnyRef, toMessage: (down: Down) => MessageOf<P>): () => void;
  /** Starts or restarts the named timer. The message of a cleared or restarted timer never arrives. */
  setTimer(name: string, ms: number, message: MessageOf<P>): void;
  clearTimer(name: string): void;
  /** Ends this actor after the current message. */
  stop(): void;
  /** Starts ending another actor without waiting for it. */
  end(target: AnyRef): void;
}

/** A term from Erlang, as opposed to a message in the actor's protocol. */
export type TermMessage =
  /** `gen_server:call`; the handler's result is the reply. */
  | { readonly kind: 'call'; readonly term: Term; readonly from: Pid; readonly node: string }
  /** `gen_server:cast` and plain messages (`Pid ! Term`). */
  | { readonly kind: 'cast' | 'info'; readonly term: Term; readonly node: string }
  /** A linked process ended and the behaviour traps exits. */
  | { readonly kind: 'exit'; readonly term: Term; readonly from: Pid; readonly node: string };

/** Defines an actor: its initial state and a handler for each message. Handlers change the state in place. */
export interface Behaviour<P extends Protocol, S> {
  /** Kind of actor, shown in the log and the listing. */
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
   * The messages that actors on other nodes may send. An actor with neither `shapes` nor `onTerm` can be neither
   * registered nor sent to another node.
   */
  readonly shapes?: Shapes<P>;
  /** True if other nodes may end the actor by an exit signal or by ending a link. */
  readonly endable?: boolean;
  /** Handles terms from Erlang. Without it, the actor understands only the messages of its protocol. */
  onTerm?(
    state: S,
    message: TermMessage,
    context: ActorContext<P>,
  ): Term | void | Promise<Term | void> | Later<Term | void>;
  /** If true, the end of a linked process becomes a message to `onTerm` instead of ending this actor. */
  readonly trapsExits?: boolean;
  /**
   * Returns the state for operators: plain data without tokens, passwords or keys. Called between turns or while a
   * handler waits; must not change anything. If omitted, the state is not shown.
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
