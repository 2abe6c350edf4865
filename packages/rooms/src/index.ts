export type * from './peer/peer-session.js';
export * from './room-service.js';
export type {
  Component,
  ComponentHost,
  ComponentKind,
  ComponentReport,
  ReceivedTrack,
} from './room/component-kind.js';
export {
  MessageContent,
  parseOptions,
  PeerOptions,
  Permissions,
  ServerMetadata,
  structureFault,
} from './options.js';
export {
  COMPONENT_SCHEMAS,
  COMPONENT_TYPES,
  type ComponentType,
  FileOptions,
  MAX_ORIGINS,
} from './component-schemas.js';
export { jsonEqual } from './json-equal.js';
export type { DrainOrder } from './drain-order.js';
export { LocalRooms, type ComponentState } from './local-rooms.js';
export type { RoomMeasure } from './room/room-journal.js';
export { Rooms } from './rooms.js';
export { ClusterRooms } from './cluster/cluster-rooms.js';
export { createClusterPort, followMembers } from './cluster/distributed-port.js';
export { rankByLoad, type LoadSample, type Verdict } from './cluster/load.js';
export type { PlacementDecision } from './cluster/placement.js';
