import type { Log } from '@bloom/log';
import { isPowerOfTwo } from '@bloom/time';
import type { AnyOptions } from '../behaviour.js';
import { MailboxFull } from '../errors.js';
import type { Activity } from '../observation/activity.js';
import type { Counters } from '../observation/inspection.js';
import type { Observer } from '../observation/observer.js';
import type { ActorRef } from '../ref.js';
import { AT_ONCE, OUTSIDE, type Message, type Origin, type Reply, type TimerState } from '../envelope.js';
import type { Turns } from './turn.js';

const DEFAULT_LIMIT = 10_000;

export interface InboxOptions {
  readonly ref: ActorRef;
  readonly policy: AnyOptions['mailbox'];
  readonly turns: Turns;
  readonly activity: Activity;
  readonly observer: Observer;
  readonly log: Log;
}

/** Decides which messages an actor accepts and passes them to its turns. */
export class Inbox {
  readonly limit: number;
  readonly #policy: AnyOptions['mailbox'];
  readonly #turns: Turns;
  readonly #counters: Counters;
  readonly #observer: Observer;
  readonly #log: Log;
  readonly #ref: ActorRef;

  constructor({ ref, policy, turns, activity, observer, log }: InboxOptions) {
    this.limit = policy?.limit ?? DEFAULT_LIMIT;
    this.#policy = policy;
    this.#turns = turns;
    this.#counters = activity.counters;
    this.#observer = observer;
    this.#log = log;
    this.#ref = ref;
  }

  /** Accepts a message from another actor. Returns false if the mailbox is full. */
  receive(message: Message, { from, requestId, isOmitted = false }: Origin, reply?: Reply): boolean {
    const turns = this.#turns;
    this.#counters.received++;
    if (turns.mailbox.size >= this.limit && !this.#isEssential(message.type)) {
      this.#overflow(message, reply);
      return false;
    }
    const at = this.#stamp(requestId !== undefined && !isOmitted);
    turns.push({ message, reply, timer: undefined, escalated: undefined, from, requestId, isOmitted, at });

    return true;
  }

  /** Accepts a message from the actor itself: from a timer or a monitor. */
  arrive(message: Message, from: string, timer?: TimerState): void {
    this.#counters.received++;
    const at = this.#observer.turn.stamp();
    this.#turns.push({
      message,
      reply: undefined,
      timer,
      escalated: undefined,
      from,
      requestId: undefined,
      isOmitted: false,
      at,
    });
  }

  /** Handles an escalated fault of a child: this actor fails with the same error. */
  escalate(error: unknown): void {
    const message = { type: 'escalated' };
    const at = this.#observer.turn.stamp();
    const escalated = { error };
    this.#turns.push({ ...OUTSIDE, message, reply: undefined, timer: undefined, escalated, at });
  }

  /** Arrival time: not read if an idle actor takes the message immediately, exact if it is a step of a request. */
  #stamp(isStep: boolean): number {
    if (isStep) return this.#observer.clock.now();

    return this.#turns.occupied ? this.#observer.turn.stamp() : AT_ONCE;
  }

  #overflow(message: Message, reply: Reply | undefined): void {
    const count = ++this.#counters.overflowed;
    // Log at 1, 2, 4, 8, ...: a flood of messages must not flood the log.
    if (isPowerOfTwo(count)) {
      this.#log.warn('actor.mailbox_full', { messageType: message.type, limit: this.limit, overflowed: count });
    }
    reply?.reject(new MailboxFull(this.#ref, this.limit));
    this.#policy?.onRefused?.(message as never);
  }

  #isEssential(type: string): boolean {
    const essential = this.#policy?.essential;

    return essential === 'all' || essential?.includes(type) === true;
  }
}
