export {
  later,
  Later,
  type ActorContext,
  type Behaviour,
  type Down,
  type Fault,
  type FaultDecision,
  type MailboxPolicy,
  type SpawnOptions,
  type StopReason,
} from './behaviour.js';
export { ManualClock, systemClock, type Clock } from './clock.js';
export {
  ActorError,
  CallCrashed,
  CallTimeout,
  MailboxFull,
  NameTaken,
  NoProcess,
  SystemStopped,
  UnknownMessage,
  type ActorErrorCode,
} from './errors.js';
export type { MessageOf, Protocol, ReplyOf } from './protocol.js';
export { sameActor, type ActorRef, type AnyRef } from './ref.js';
export {
  createActorSystem,
  type ActorInfo,
  type ActorSystem,
  type ActorSystemOptions,
  type ListOptions,
} from './system.js';
