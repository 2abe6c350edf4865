/** What the nodes of a cluster say to each other about rooms. Plain data and actor refs throughout. */
import type { Outcome } from '../outcome.js';
import type { RoomRef } from '../room-messages.js';
import type { ComponentType, RoomConfig, RoomView } from '../room-service.js';
import type { OwnedRoom } from './directory.js';
import type { Load, LoadAnswer } from './load.js';
import type { ReserveAnswer } from './reservations.js';

export type NamedConfig = RoomConfig & { roomId: string };

/** A call of the room service on behalf of another node. */
export type ServiceCall =
  | { method: 'getRoom' | 'deleteRoom'; roomId: string }
  | { method: 'addPeer'; roomId: string; options: unknown }
  | { method: 'removePeer'; roomId: string; peerId: string }
  | { method: 'addComponent'; roomId: string; kind: ComponentType; options: unknown }
  | { method: 'removeComponent' | 'hangUp'; roomId: string; componentId: string }
  | { method: 'subscribeComponent'; roomId: string; componentId: string; origins: readonly string[] }
  | { method: 'dial'; roomId: string; componentId: string; phoneNumber: string };

/** The actor `rooms_node` of each node. */
export type NodeProtocol = {
  load: (message: object) => LoadAnswer;
  /** A place for a room that is about to be created; it counts as load until it is used or too old. */
  reserve: (message: { seen: Load }) => ReserveAnswer;
  /** Uses the reservation. `creation` names this attempt. */
  create: (message: { reservation: string; creation: string; config: NamedConfig }) => Outcome<{
    room: RoomView;
    address: string;
  }>;
  /** The asker has given that attempt up: whatever came or comes of it goes. */
  withdraw: (message: { creation: string }) => void;
  /** As home of the id: may a room of that id be created? */
  claim: (message: { roomId: string; claimant: string }) => { granted: boolean };
  /** The creation is over; `owner` is the node that has the room now, absent when there is none. */
  unclaim: (message: { roomId: string; claimant: string; owner?: string }) => void;
  /** Everything the sender owns, when the link has come up. */
  snapshot: (message: { node: string; rooms: readonly OwnedRoom[] }) => void;
  announce: (message: { node: string; created?: OwnedRoom; removed?: string }) => void;
  owns: (message: { roomId: string }) => boolean;
  listRooms: (message: object) => readonly RoomView[];
  serve: (message: { call: ServiceCall }) => Outcome<unknown>;
  roomRef: (message: { roomId: string }) => RoomRef | null;
};
