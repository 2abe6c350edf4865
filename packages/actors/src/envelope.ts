import type { TermMessage } from './behaviour.js';

export interface Message {
  readonly type: string;
}

/** A term from Erlang. It is a class so that no message from another node can pass for one. */
export class TermEnvelope implements Message {
  readonly type: string;
  constructor(readonly term: TermMessage) {
    this.type = `$${term.kind}`;
  }
}

/** Receives the answer of a call; settles once. */
export interface Reply {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One start of an actor's timer. */
export interface TimerState {
  readonly name: string;
  /** Unix milliseconds. */
  readonly dueAt: number;
  handle: unknown;
}

/** A message in a mailbox. */
export interface Envelope extends Origin {
  readonly message: Message;
  readonly reply: Reply | undefined;
  /** Set for a timer's message, which counts only until the timer is cleared or restarted. */
  readonly timer: TimerState | undefined;
  /** Set when a child escalated: the actor handles the message by failing with this error. */
  readonly escalated: { error: unknown } | undefined;
  /** Arrival time by the monotonic clock: exact for a request's message, otherwise that of the turn, or `AT_ONCE`. */
  readonly at: number;
  readonly isOmitted: boolean;
}

/** Marks an arrival time that was not read because an idle actor takes the message immediately. */
export const AT_ONCE = -1;

/** The request that a message belongs to. */
export interface RequestOf {
  readonly requestId: string | undefined;
  /** The message, and what it causes, is not recorded as a step of the request; see `FanOut`. */
  readonly isOmitted?: boolean | undefined;
}

/** Who sent a message, and for which request. */
export interface Origin extends RequestOf {
  /** Path of the sending actor, or name of the sending face. */
  readonly from: string;
}

export const OUTSIDE = { from: 'outside', requestId: undefined, isOmitted: false } satisfies Origin;
