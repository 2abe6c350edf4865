/** Erlang distribution: nodes, the links between them, and membership. */
export { LOCAL_COOKIE } from './door.js';
export { DistributionError, type DistributionErrorCode, HandshakeFailed, type HandshakeFailure } from './errors.js';
export { missingFlags, ownFlags } from './handshake/flags.js';
export { asGenCall, type GenCall } from './link/gen-call.js';
export { type Identity, Initiator, type Step } from './handshake/handshake.js';
export type { CloseReason, LinkCounters, SendKind, SendResult } from './link/link.js';
export { type Announcement, type Protocols, PROTOCOLS, type Spoken } from './membership/announcement.js';
export type {
  ClusterEvent,
  LinkFailure,
  LinkState,
  NodeDown,
  NodeKind,
  NodeListener,
  NodeRefused,
  NodeUp,
} from './membership/link-state.js';
export { bindSocket, type ListenAddress } from './handshake/listener.js';
export {
  isLong,
  isNodeName,
  type NameMode,
  type NodeName,
  parseNodeName,
} from './handshake/names.js';
export type { NodeLimits } from './limits.js';
export { DistributionNode, type NodeCounters, type NodeFilter, type NodeOptions } from './node.js';
export type {
  Envelope,
  ExitSignal,
  Monitor,
  ProcessTable,
  SpawnAnswer,
  SpawnRequest,
  Target,
  Watched,
} from './processes.js';
export type { NodeNetwork, NodeWorld, Reachable } from './world.js';
