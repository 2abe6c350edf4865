import type { TermMessage } from '../behaviour.js';
import type { TimerState } from './timers.js';

export interface Message {
  readonly type: string;
}

/** A term from Erlang. A class, so that no message of another node can pass for one. */
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

/** A message in a mailbox. */
export interface Envelope {
  readonly message: Message;
  readonly reply: Reply | undefined;
  /** Set for a timer's message, which counts only while that start of the timer is current. */
  readonly timer: TimerState | undefined;
  /** Set when a child escalated: handling the message means failing with this error. */
  readonly escalated: { error: unknown } | undefined;
  readonly from: string;
  readonly requestId: string | undefined;
  /** Arrival time by the monotonic clock: exact for a message of a request, else that of the turn, or `AT_ONCE`. */
  readonly at: number;
}

/** Stands for an arrival time that was not read: an idle actor takes the message immediately. */
export const AT_ONCE = -1;

export const OUTSIDE = 'outside';
