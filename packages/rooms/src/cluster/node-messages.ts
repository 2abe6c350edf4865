/** Messages about rooms between the nodes of a cluster: plain data and actor refs only. */
import {
  actor,
  count,
  either,
  flag,
  jsonText,
  list,
  nullable,
  number,
  object,
  optional,
  sender,
  takes,
  text,
  type Shapes,
} from '@bloom/actors';
import type { Outcome } from '../outcome.js';
import { ROOM_SHAPES, type RoomRef } from '../room/room-messages.js';
import { createdRoom, id, namedConfig, outcome, roomView } from '../room/view-shapes.js';
import type { CreatedRoom, NamedConfig, RoomView } from '../room-service.js';
import { MAX_ROOMS, type OwnedRoom } from './directory.js';
import type { Load, LoadAnswer } from './load.js';
import type { ReserveAnswer } from './reservations.js';

/** Registered name of the actor that speaks `NodeProtocol` on each node. */
export const NODE_ACTOR = 'rooms_node';

/** Messages between nodes. Calls about a single room are not included: they go to the room's actor. */
export type NodeProtocol = {
  load: (message: object) => LoadAnswer;
  /** Reserves a place for a room. It counts as load until it is used or expires. */
  reserve: (message: { seen: Load }) => ReserveAnswer;
  /** Uses the reservation. `creation` identifies this attempt. */
  create: (message: { reservation: string; creation: string; config: NamedConfig }) => Outcome<CreatedRoom>;
  /** Withdraws an attempt that the caller has given up: any room it has created or will still create is deleted. */
  withdraw: (message: { creation: string }) => void;
  /** Asks the home of an id whether a room of that id may be created. */
  claim: (message: { roomId: string; claimant: string }) => { granted: boolean };
  /** Ends a claim. `owner` is the node that now has the room; absent when there is none. */
  unclaim: (message: { roomId: string; claimant: string; owner?: string }) => void;
  /** All rooms of the sender, sent when the link comes up. */
  snapshot: (message: { node: string; rooms: readonly OwnedRoom[] }) => void;
  announce: (message: { node: string; created?: OwnedRoom; removed?: string }) => void;
  /** Returns the actor of a room of this node, or null. */
  roomRef: (message: { roomId: string }) => RoomRef | null;
  /**
   * Asks for the answer as JSON text, because metadata can exceed the limit of terms per message. Older releases ignore
   * this field.
   */
  listRooms: (message: { text?: boolean }) => readonly RoomView[] | string;
  /** Returns the last known state of a room of this node, or null. Does not ask the room, which may be stuck. */
  viewRoom: (message: { roomId: string; text?: boolean }) => RoomView | string | null;
};

const load = { forwardedTracks: count, rooms: count };
const loadAnswer = object({ ...load, draining: flag });
const room = actor(() => ROOM_SHAPES);
const ownedRoom = object({ roomId: id, createdAt: number, epoch: optional(count), ref: room });

export const NODE_SHAPES: Shapes<NodeProtocol> = {
  load: takes({}, loadAnswer),
  reserve: takes({ seen: object(load) }, either(object({ granted: text() }), object({ refused: loadAnswer }))),
  create: takes({ reservation: text(), creation: text(100), config: namedConfig }, outcome(createdRoom)),
  withdraw: takes({ creation: text(100) }),
  claim: takes({ roomId: id, claimant: text(100) }, object({ granted: flag })),
  unclaim: takes({ roomId: id, claimant: text(100), owner: optional(text()) }),
  snapshot: takes({ node: sender, rooms: list(ownedRoom, MAX_ROOMS) }),
  announce: takes({ node: sender, created: optional(ownedRoom), removed: optional(id) }),
  roomRef: takes({ roomId: id }, nullable(room)),
  listRooms: takes({ text: optional(flag) }, jsonText(list(roomView))),
  viewRoom: takes({ roomId: id, text: optional(flag) }, jsonText(nullable(roomView))),
};
