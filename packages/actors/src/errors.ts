import type { Term } from '@bloom/etf';
import type { ActorRef } from './ref.js';

export type ActorErrorCode =
  /** The called actor does not exist, or ended before it answered. */
  | 'NO_PROCESS'
  /** The target did not answer in time; it may still act on the request. */
  | 'TIMEOUT'
  /** The handler of the request threw `cause`. */
  | 'CRASHED'
  /** The target's mailbox is at its limit; the request was not accepted. */
  | 'MAILBOX_FULL'
  /** A living actor is registered under this name. */
  | 'NAME_TAKEN'
  /** The actor system has stopped; no actor can be started. */
  | 'SYSTEM_STOPPED'
  /** The actor has no handler for messages of this type: the sender is at fault and the receiver continues. */
  | 'UNKNOWN_MESSAGE'
  /** The target's node is not connected, or the connection was lost before the answer: the request may have run. */
  | 'NO_CONNECTION'
  /** The connection to the target's node is at its limit of unsent bytes; the request was not sent. */
  | 'LINK_FULL'
  /** The message or reply cannot go to another node: it is not plain data, or is too large. */
  | 'NOT_SENDABLE'
  /** The limit of unanswered calls to other nodes is reached. */
  | 'TOO_MANY_CALLS'
  /** A fault on another node, reduced to its message. */
  | 'REMOTE_FAULT'
  /** The message does not have the shape that its receiver declares: it was not delivered. */
  | 'BAD_MESSAGE'
  /** The answer of another node does not have the declared shape. */
  | 'BAD_ANSWER'
  /** The actor declares no messages from other nodes: it can neither be registered nor called from another node. */
  | 'NO_SHAPES'
  /** The actor chose a reason to end with, or an exit signal ended it. */
  | 'EXIT'
  /** An operator killed the actor. */
  | 'KILLED';

/** Every error of this package; `code` is stable. */
export class ActorError extends Error {
  override readonly name = 'ActorError';

  constructor(
    readonly code: ActorErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** True if the target is gone or has crashed, so that repeating the call is of no use. */
  get isFinal(): boolean {
    return this.code === 'NO_PROCESS' || this.code === 'CRASHED';
  }
}

export class MailboxFull extends ActorError {
  constructor(
    target: Target,
    readonly limit: number,
  ) {
    super('MAILBOX_FULL', `the mailbox of ${describe(target)} holds its limit of ${limit} messages`);
  }
}

export class RemoteFault extends ActorError {
  constructor(
    readonly node: string,
    readonly reason: Term,
    text: string,
  ) {
    super('REMOTE_FAULT', `on ${node}: ${text}`);
  }
}

/**
 * Ends an actor with this term as the reason that Erlang's monitors and links see. A handler throws it; it is also the
 * error of an actor that an exit signal has ended.
 */
export class Exit extends ActorError {
  constructor(
    readonly reason: Term,
    text = 'ended with a custom reason',
  ) {
    super('EXIT', text);
  }
}

type Target = ActorRef | string;

export function noProcess(target: Target): ActorError {
  return new ActorError('NO_PROCESS', `no actor ${describe(target)}`);
}

export function callTimeout(target: Target, request: string, timeoutMs: number): ActorError {
  return new ActorError('TIMEOUT', `${describe(target)} did not answer ${request} within ${timeoutMs} ms`);
}

export function callCrashed(target: Target, request: string, cause: unknown): ActorError {
  const text = cause instanceof Error ? cause.message : String(cause);

  return new ActorError('CRASHED', `${describe(target)} failed on ${request}: ${text}`, { cause });
}

export function nameTaken(what: string): ActorError {
  return new ActorError('NAME_TAKEN', `${what} is taken by a living actor`);
}

export function unknownMessage(target: Target, type: string): ActorError {
  return new ActorError('UNKNOWN_MESSAGE', `${describe(target)} has no handler for ${type}`);
}

export function noConnection(target: Target, node: string): ActorError {
  return new ActorError('NO_CONNECTION', `no connection to ${node} for ${describe(target)}`);
}

export function badMessage(target: Target, type: string, fault: string): ActorError {
  return new ActorError('BAD_MESSAGE', `${describe(target)} does not take this ${type}: ${fault}`);
}

export function badAnswer(target: Target, type: string, fault: string): ActorError {
  return new ActorError('BAD_ANSWER', `${describe(target)} gave a malformed answer to ${type}: ${fault}`);
}

export function noShapes(target: Target): ActorError {
  return new ActorError('NO_SHAPES', `${describe(target)} declares no messages of other nodes`);
}

export function notSendable(why: string, cause?: unknown): ActorError {
  return new ActorError('NOT_SENDABLE', `not sendable to another node: ${why}`, { cause });
}

function describe(target: Target): string {
  return typeof target === 'string' ? `named ${target}` : target.path;
}
