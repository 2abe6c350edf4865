export type * from './peer-session.js';
export * from './room-service.js';
export type {
  Component,
  ComponentHost,
  ComponentKind,
  ComponentRoom,
  PreparedComponent,
  ReceivedTrack,
} from './component-kind.js';
export {
  FileOptions,
  FileOptionsDocument,
  HlsOptions,
  parseOptions,
  PeerOptions,
  RecordingOptions,
  SipOptions,
  SubscribeMode,
} from './options.js';
export type { ComponentReport } from './room-messages.js';
export { issuePeerToken, verifyPeerToken, TOKEN_LIFETIME_MS, type TokenClaim, type TokenKey } from './peer-token.js';
export {
  createRooms,
  type ComponentState,
  type PeerReport,
  type RoomEvents,
  type RoomReport,
  type Rooms,
  type RoomsLoad,
  type RoomsOptions,
} from './rooms.js';
export type { ClusterPort } from './cluster/cluster-port.js';
export { ClusterRooms, type ClusterRoomsOptions } from './cluster/cluster-rooms.js';
export { createClusterPort, followMembers, type ClusterPortOptions } from './cluster/distributed-port.js';
export type { RoomConflict } from './cluster/directory.js';
export { rankByLoad, type LoadSample, type Verdict } from './cluster/load.js';
export { NODE_ACTOR } from './cluster/node-actor.js';
export type { NodeProtocol } from './cluster/node-messages.js';
export type { PlacementDecision } from './cluster/placement.js';
