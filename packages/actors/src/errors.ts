import type { ActorRef } from './ref.js';

export type ActorErrorCode =
  | 'NO_PROCESS'
  | 'TIMEOUT'
  | 'CRASHED'
  | 'MAILBOX_FULL'
  | 'NAME_TAKEN'
  | 'SYSTEM_STOPPED'
  | 'UNKNOWN_MESSAGE';

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

export class NameTaken extends ActorError {
  constructor(what: string) {
    super('NAME_TAKEN', `${what} is taken by a living actor`);
  }
}

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

function describe(target: ActorRef | string): string {
  return typeof target === 'string' ? `named ${target}` : target.path;
}
