/** Messages about rooms between the nodes of a cluster: plain data and actor refs only. */
import {
  actor,
  constant,
  count,
  either,
  FAILED,
  flag,
  jsonText,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  sender,
  takes,
  text,
  type Shape,
  type Shapes,
} from '@bloom/actors';
import type { Outcome } from '../outcome.js';
import { ROOM_SHAPES, type RoomRef } from '../room/room-messages.js';
import { createdRoom, id, namedConfig, outcome, roomView } from '../room/view-shapes.js';
import type { CreatedRoom, NamedConfig, RoomView } from '../room-service.js';
import { MAX_SNAPSHOT, roomSnapshot, type RoomSnapshot } from '../room/room-snapshot.js';
import { MAX_ROOMS, type OwnedRoom } from './directory.js';
import type { Load, LoadAnswer } from './load.js';
import type { GiverSays, Offer, OfferAnswer } from './move-states.js';
import { MAX_MIRROR, type MirrorAnswer, type MirroredRoom, type MirrorUpdate } from './mirrors.js';
import type { ReserveAnswer } from './reservations.js';
import type { Campaign, Vote } from './standby-states.js';
import type { Pulse, PulseAnswer } from './witness.js';
import { eventText } from '../room/room-webhooks.js';

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
  /**
   * Offers a room that moves from the sender (docs/reference/moving.md), with the reservation for it. From protocol 2
   * on, as are the next three. `snapshot` is JSON text between nodes.
   */
  offerRoom: (
    message: Omit<Offer, 'snapshot'> & { reservation: string; snapshot: RoomSnapshot | string },
  ) => OfferAnswer;
  /** The offered room belongs to the receiver now. Returns its actor; null if the receiver knows nothing of it. */
  takeRoom: (message: { node: string; move: string }) => RoomRef | null;
  /** The room stays at the sender, which may not have offered it yet. Ends its reservation. */
  keepRoom: (message: { node: string; move: string; reservation?: string }) => void;
  /**
   * The giver of a room sends no event of it to the webhook receiver any more; `event` is the one, in Base64, that it
   * could not deliver. From protocol 3 on.
   */
  webhooksOver: (message: { node: string; move: string; event: string | null }) => void;
  /** Asks the giver of an offered room, on behalf of its taker, for its decision. */
  moveState: (message: { node: string; move: string }) => GiverSays;
  /** Returns the node that the receiver has given the room to, until that has confirmed it; null = none. */
  takerOf: (message: { roomId: string }) => string | null;
  /** Says that the sender, which has rooms with standbys, lives. From protocol 3 on, as are the next four. */
  pulse: (message: Pulse & { node: string }) => PulseAnswer;
  /** The state of a room of the sender, whose standby process `to` is. `room` is JSON text between nodes. */
  mirrorRoom: (message: MirrorUpdate & { to: string; room: MirroredRoom | string }) => MirrorAnswer;
  /**
   * The receiver's process `to` is no standby of that room any more. False: it is taking the room over, or has; or the
   * receiver is another process, which does not know.
   */
  forgetRoom: (message: { node: string; to: string; roomId: string; epoch: number }) => boolean;
  /** Asks for a vote for the sender, as the standby of rooms whose owner is lost. */
  vote: (message: Campaign) => Vote;
  /**
   * Returns whether the receiver is the standby of a room with this id. `orphaned`: of one whose owner has ended, or
   * has no link to the receiver.
   */
  hasMirror: (message: { roomId: string; orphaned?: boolean }) => boolean;
  /** Returns the actor of a room of this node, or the one that passes messages on to a room that has moved, or null. */
  roomRef: (message: { roomId: string }) => RoomRef | null;
  /**
   * Asks for the answer as JSON text, because metadata can exceed the limit of terms per message. Older releases ignore
   * this field.
   */
  listRooms: (message: { text?: boolean }) => readonly RoomView[] | string;
  /** Returns the last known state of a room of this node, or null. Does not ask the room, which may be stuck. */
  viewRoom: (message: { roomId: string; text?: boolean }) => RoomView | string | null;
};

const move = { node: sender, move: text(100) };
const snapshotText: Shape<RoomSnapshot> = (value, reading) =>
  typeof value === 'string' && value.length <= MAX_SNAPSHOT
    ? jsonText(roomSnapshot)(value, reading)
    : reading.fail(`JSON text of at most ${MAX_SNAPSHOT} characters`);

/**
 * Maximum number of members that an owner counts, rooms that votes are asked for, and votes that one member reports.
 */
const MAX_MEMBERS = 2_048;
const MAX_CANDIDACIES = 10_000;
/** Longest address of a node for clients. */
const MAX_ADDRESS = 2_048;
const node = text(255);
const process = text(100);
const mirrorText: Shape<MirroredRoom> = (value, reading) => {
  if (typeof value !== 'string' || value.length > MAX_MIRROR)
    return reading.fail(`JSON text of at most ${MAX_MIRROR} characters`);
  const snapshot = jsonText(roomSnapshot)(value, reading);

  return snapshot === FAILED ? FAILED : { snapshot, chars: value.length };
};
const candidacy = object({ roomId: id, createdAt: number, epoch: count });

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
  offerRoom: takes(
    { ...move, reservation: text(), createdAt: number, epoch: count, snapshot: snapshotText },
    either(object({ accepted: constant(true) }), object({ refused: text() })),
  ),
  takeRoom: takes(move, nullable(room)),
  keepRoom: takes({ ...move, reservation: optional(text()) }),
  webhooksOver: takes({ ...move, event: nullable(eventText) }),
  moveState: takes(move, oneOf(['offered', 'given', 'unknown'])),
  takerOf: takes({ roomId: id }, nullable(node)),
  pulse: takes(
    { node: sender, process, settled: list(count, MAX_MEMBERS), revoked: list(candidacy, MAX_CANDIDACIES) },
    object({ process, votes: list(object({ standby: node, process, number: count }), MAX_MEMBERS), noted: flag }),
  ),
  mirrorRoom: takes(
    {
      node: sender,
      process,
      to: process,
      createdAt: number,
      epoch: count,
      members: list(object({ node, process }), MAX_MEMBERS),
      room: mirrorText,
    },
    either(object({ kept: flag, address: optional(text(MAX_ADDRESS)) }), object({ refused: text() })),
  ),
  forgetRoom: takes({ node: sender, to: process, roomId: id, epoch: count }, flag),
  vote: takes(
    {
      node: sender,
      process,
      owner: node,
      ownerProcess: process,
      creation: nullable(count),
      took: flag,
      rooms: list(candidacy, MAX_CANDIDACIES),
    },
    either(
      object({ granted: constant(true), process, denied: list(id, MAX_CANDIDACIES) }),
      object({ granted: constant(false) }),
    ),
  ),
  hasMirror: takes({ roomId: id, orphaned: optional(flag) }, flag),
  roomRef: takes({ roomId: id }, nullable(room)),
  listRooms: takes({ text: optional(flag) }, jsonText(list(roomView))),
  viewRoom: takes({ roomId: id, text: optional(flag) }, jsonText(nullable(roomView))),
};
