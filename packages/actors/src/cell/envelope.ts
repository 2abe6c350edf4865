import type { TermMessage } from '../behaviour.js';
import type { TimerState } from './timers.js';

export interface Message {
  readonly type: string;
}

/** What came from Erlang, in its envelope. A class, so that no message of another node can pass for one. */
export class TermEnvelope implements Message {
  readonly type: string;
  constructor(readonly term: TermMessage) {
    this.type = `$${term.kind}`;
  }
}

/** Where the answer of a call goes; settles once. */
export interface Reply {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Where a message comes from. */
export interface Origin {
  /** Path of an actor, name of a node, a face, or `outside`. */
  readonly path: string;
  readonly requestId: string | undefined;
}

/** A message in a mailbox. */
export interface Envelope {
  readonly message: Message;
  readonly reply: Reply | undefined;
  /** Set for a timer's message: it counts only while that very start of the timer is current. */
  readonly timer: TimerState | undefined;
  /** Set when a child escalated: handling it is failing with this error. */
  readonly escalated: { error: unknown } | undefined;
  readonly from: string;
  readonly requestId: string | undefined;
  /** When it came by the fine clock: exact for a message of a request, else as of the turn; `AT_ONCE`. */
  readonly at: number;
}

/** In the place of a time: an idle actor had nothing else to do than to take it. */
export const AT_ONCE = -1;

export const OUTSIDE = 'outside';
