export type * from './peer-session.js';
export * from './room-service.js';
export type {
  Component,
  ComponentHost,
  ComponentKind,
  ComponentRoom,
  PreparedComponent,
} from './component-kind.js';
export type { ComponentReport } from './room-messages.js';
export { issuePeerToken, verifyPeerToken, TOKEN_LIFETIME_MS, type TokenClaim, type TokenKey } from './peer-token.js';
export {
  createRooms,
  type PeerReport,
  type RoomEvents,
  type RoomReport,
  type Rooms,
  type RoomsLoad,
  type RoomsOptions,
} from './rooms.js';
