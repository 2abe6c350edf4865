/** Erlang distribution: nodes, links between them, and who is a member. */
export { type Clock, systemClock } from './clock.js';
export type { ClusterEvents } from './cluster-events.js';
export { MAX_CUT_MS } from './cuts.js';
export type { SpawnRequest, Target } from './control.js';
export {
  BadNodeName,
  CannotListen,
  DistributionError,
  FrameTooBig,
  HandshakeFailed,
  type HandshakeFailure,
  LinkCut,
  NameKindMismatch,
  NodeNotRegistered,
  NodeStopped,
  NodeUnreachable,
  NotConnected,
} from './errors.js';
export { missingFlags, ownFlags } from './flags.js';
export { aliasOf, asGenCall, type GenCall } from './gen-call.js';
export { type Identity, Initiator, type Step } from './handshake.js';
export type { CloseReason, LinkCounters, SendKind, SendResult } from './link.js';
export type { ClusterEvent, LinkFailure, LinkState } from './link-state.js';
export type { ListenAddress } from './listener.js';
export type { PeerKind } from './mesh.js';
export {
  checkKind,
  isLong,
  isLower,
  MAX_NODE_NAME,
  type NameMode,
  type NodeName,
  parseNodeName,
  parseOwnName,
} from './names.js';
export { DistributionNode } from './node.js';
export type {
  NodeCounters,
  NodeDown,
  NodeKind,
  NodeLimits,
  NodeListener,
  NodeOptions,
  NodeUp,
} from './node-options.js';
export { noProcesses, type ProcessTable, type SpawnAnswer } from './processes.js';
export type { Watched } from './signals.js';
