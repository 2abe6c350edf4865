export type * from './peer/peer-session.js';
export * from './room-service.js';
export type {
  Component,
  ComponentHost,
  ComponentKind,
  ComponentProgress,
  FormerComponent,
  ComponentReport,
  ReceivedTrack,
  StreamProgress,
} from './room/component-kind.js';
export {
  MAX_RECEIVERS,
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
export { type GuestTerms, type Invitation, MAX_PASS_TTL, Passes, type RoomIdentity } from './passes.js';
export { INVALID_STRUCTURE, validate } from './validation.js';
export { readRoomFile, ROOM_FILE, roomFile } from './room-file.js';
export { jsonEqual } from './json-equal.js';
export type { DrainOrder } from './drain-order.js';
export { RoomHost } from './room-host.js';
export { type CallProgress, canMove } from './room/call-progress.js';
export { MAX_STREAM_BYTES } from './room/room-snapshot.js';
export type { ComponentState } from './room-reports.js';
export type { RoomMeasure } from './room/room-journal.js';
export { RoomRouter } from './room-router.js';
export { RoomRegistry } from './cluster/room-registry.js';
export type { RoomWebhooks } from './room/room-webhooks.js';
export type { RoomConflict } from './cluster/directory.js';
export type { Reach } from './media-reach.js';
export { peerRelay } from './peer/credentials.js';
export { type PathCheck, PathChecks } from './path-checks.js';
export type { MediaMeasure } from './room/media-journal.js';
export { createClusterPort, followMembers } from './cluster/distributed-port.js';
export { rankByLoad, type LoadSample, type Verdict } from './cluster/load.js';
export type { MovePoint, MovePoints } from './cluster/move-points.js';
export type { PlacementDecision } from './cluster/placement.js';
