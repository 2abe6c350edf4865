export {
  later,
  type ActorContext,
  type Behaviour,
  type Down,
  type Fault,
  type FaultDecision,
  type MailboxPolicy,
  type SpawnOptions,
  type StopReason,
  type TermMessage,
} from './behaviour.js';
export { ActorError, Exit, type ActorErrorCode } from './errors.js';
export type { MessageOf, Protocol, ReplyOf } from './protocol.js';
export { actor, isActorRef, isRemote, nodeOf, type ActorRef, type AnyRef } from './ref.js';
export type {
  ActorDetails,
  ActorInfo,
  ActorStatus,
  Hop,
  Inspected,
  LastError,
  Trace,
  TraceEnd,
  TraceEvent,
  TraceOptions,
  WaitingMessage,
} from './observation/inspection.js';
export { newRequestId } from './observation/request.js';
export { outcomeOf, valueOf, type Outcome } from './outcome.js';
export {
  openActorSystem,
  type ActorSystem,
  type ActorSystemOptions,
  type ListOptions,
  type Sender,
} from './system.js';
export type { RemoteCounters } from './remote/counters.js';
export type { FunctionOptions, NodeFunction } from './remote/functions.js';
export { connectActors, type RemoteActors, type RemoteOptions } from './remote/remote-actors.js';
export {
  bytes,
  constant,
  count,
  either,
  FAILED,
  flag,
  integer,
  json,
  jsonText,
  limited,
  list,
  LOCAL,
  nullable,
  number,
  object,
  oneOf,
  optional,
  origin,
  otherwise,
  outcome,
  Reading,
  sender,
  tagged,
  takes,
  text,
  unchecked,
  type Shape,
  type Shapes,
} from './shape.js';
