import type { Term } from '@bloom/etf';
import type { ActorRef } from './ref.js';

export type ActorErrorCode =
  | 'NO_PROCESS'
  | 'TIMEOUT'
  | 'CRASHED'
  | 'MAILBOX_FULL'
  | 'NAME_TAKEN'
  | 'SYSTEM_STOPPED'
  | 'UNKNOWN_MESSAGE'
  | 'NO_CONNECTION'
  | 'LINK_FULL'
  | 'NOT_SENDABLE'
  | 'TOO_MANY_CALLS'
  | 'REMOTE_FAULT'
  | 'EXIT'
  | 'KILLED';

/** Base of everything this package throws. */
export class ActorError extends Error {
  override readonly name = 'ActorError';
  constructor(
    readonly code: ActorErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The target of a call does not live (any more), or ended before it answered. */
export class NoProcess extends ActorError {
  constructor(target: ActorRef | string) {
    super('NO_PROCESS', `no actor ${describe(target)}`);
  }
}

/** The target lives but did not answer in time; whether it will still act on the request is unknown. */
export class CallTimeout extends ActorError {
  constructor(
    target: ActorRef | string,
    readonly request: string,
    readonly timeoutMs: number,
  ) {
    super('TIMEOUT', `${describe(target)} did not answer ${request} within ${timeoutMs} ms`);
  }
}

/** The handler of the request threw; `cause` is what it threw. */
export class CallCrashed extends ActorError {
  constructor(
    target: ActorRef | string,
    readonly request: string,
    cause: unknown,
  ) {
    super('CRASHED', `${describe(target)} failed on ${request}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  }
}

/** The target's mailbox is at its limit; the request was not taken. */
export class MailboxFull extends ActorError {
  constructor(
    target: ActorRef | string,
    readonly limit: number,
  ) {
    super('MAILBOX_FULL', `the mailbox of ${describe(target)} holds its limit of ${limit} messages`);
  }
}

/** The name is registered for a living actor. */
export class NameTaken extends ActorError {
  constructor(what: string) {
    super('NAME_TAKEN', `${what} is taken by a living actor`);
  }
}

/** The actor system has stopped; no actor can be started. */
export class SystemStopped extends ActorError {
  constructor() {
    super('SYSTEM_STOPPED', 'the actor system has stopped and starts no actors');
  }
}

/** A message whose type the actor has no handler for: a fault of the sender, the receiver goes on. */
export class UnknownMessage extends ActorError {
  constructor(target: ActorRef | string, type: string) {
    super('UNKNOWN_MESSAGE', `${describe(target)} has no handler for ${type}`);
  }
}

/** The target's node is not connected, or the connection was lost before the answer came: the request may have run. */
export class NoConnection extends ActorError {
  constructor(
    target: ActorRef | string,
    readonly node: string,
  ) {
    super('NO_CONNECTION', `no connection to ${node} for ${describe(target)}`);
  }
}

/** The connection to the target's node has more unsent bytes than it may; the request was not sent. */
export class LinkFull extends ActorError {
  constructor(
    target: ActorRef | string,
    readonly node: string,
  ) {
    super(
      'LINK_FULL',
      `the connection to ${node} takes no more requests at the moment, such as one to ${describe(target)}`,
    );
  }
}

/** A message or reply that cannot go to another node: it is no plain data, or too large. */
export class NotSendable extends ActorError {
  constructor(why: string, options?: ErrorOptions) {
    super('NOT_SENDABLE', `not sendable to another node: ${why}`, options);
  }
}

/** More calls to other nodes are waiting than the limit. */
export class TooManyCalls extends ActorError {
  constructor(readonly limit: number) {
    super('TOO_MANY_CALLS', `${limit} calls to other nodes are waiting for their answers`);
  }
}

/** A fault on another node, as far as it travels. */
export class RemoteFault extends ActorError {
  constructor(
    readonly node: string,
    readonly reason: Term,
    text: string,
  ) {
    super('REMOTE_FAULT', `on ${node}: ${text}`);
  }
}

/** What an actor fails with that an operator killed. */
export class Killed extends ActorError {
  constructor(target: ActorRef | string, reason: string) {
    super('KILLED', `${describe(target)} was killed by an operator: ${reason}`);
  }
}

/**
 * Ends an actor with that term as reason, which is what Erlang's monitors and links see. Thrown by a handler, or the
 * error of an actor that an exit signal has ended.
 */
export class Exit extends ActorError {
  constructor(
    readonly reason: Term,
    text = 'ended with a reason of its own',
  ) {
    super('EXIT', text);
  }
}

function describe(target: ActorRef | string): string {
  return typeof target === 'string' ? `named ${target}` : target.path;
}
