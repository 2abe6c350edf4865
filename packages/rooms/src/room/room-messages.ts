/** Messages of the room actor: plain data and actor refs only, because calls also come from other nodes. */
import {
  actor,
  bytes,
  constant,
  count,
  either,
  flag,
  integer,
  json,
  list,
  LOCAL,
  nullable,
  number,
  object,
  oneOf,
  optional,
  takes,
  text,
  type ActorRef,
  type Down,
  type ReplyOf,
  type Shape,
  type Shapes,
} from '@bloom/actors';
import type { MediaRoomEvent } from '@bloom/sfu';
import { type ComponentType, MAX_ORIGINS } from '../component-schemas.js';
import type { Outcome } from '../outcome.js';
import {
  CLOSE_REASON,
  SOCKET_SHAPES,
  type AttachAnswer,
  type AttachRequest,
  type SocketWatch,
} from '../peer/peer-messages.js';
import { MAX_RECEIVERS } from '../options.js';
import { attachAnswer, CLIENT_KINDS, SOCKET_ENDS } from '../peer/attach-shapes.js';
import type { PeerRequest } from '../peer/peer-session.js';
import type {
  AddedPeer,
  ComponentView,
  Guest,
  PeerChanges,
  PeerRelay,
  PeerView,
  RoomChanges,
  RoomMessage,
  RoomView,
  SessionAddress,
  TrackAddress,
  TrackView,
} from '../room-service.js';
import type { ComponentReport } from './component-kind.js';
import type { RoomSnapshot } from './room-snapshot.js';
import {
  componentType,
  componentView,
  id,
  messageData,
  messageTopic,
  outcome,
  peerChanges,
  peerView,
  roomChanges,
  roomView,
  trackView,
} from './view-shapes.js';

/** What the faces may ask of a room: `RoomRouter` sends each call to the room's actor, on whichever node it runs. */
export type RoomCalls = {
  getRoom: (message: object) => Outcome<RoomView>;
  updateRoom: (message: { changes: RoomChanges }) => Outcome<RoomView>;
  /** `why` is for the log; default `deleted`. */
  deleteRoom: (message: { why?: 'node_closing' }) => Outcome<null>;
  addPeer: (message: { options: unknown }) => Outcome<AddedPeer>;
  addGuest: (message: Guest) => Outcome<AddedPeer>;
  updatePeer: (message: { peerId: string; changes: PeerChanges }) => Outcome<PeerView>;
  describedPeers: (message: object) => Outcome<string[]>;
  peersWithClient: (message: { client: string }) => Outcome<string[]>;
  removePeer: (message: { peerId: string; reason: string | null }) => Outcome<null>;
  muteTrack: (message: TrackAddress & { muted: boolean }) => Outcome<TrackView>;
  removeTrack: (message: TrackAddress) => Outcome<null>;
  /** `to` null = all peers. */
  sendMessage: (message: RoomMessage & { to: readonly string[] | null }) => Outcome<{ delivered: number }>;
  addComponent: (message: { kind: ComponentType; options: unknown }) => Outcome<ComponentView>;
  removeComponent: (message: { componentId: string }) => Outcome<null>;
  updateComponent: (message: { componentId: string; paused: boolean }) => Outcome<ComponentView>;
  subscribeComponent: (message: { componentId: string; origins: readonly string[] }) => Outcome<null>;
  dial: (message: { componentId: string; phoneNumber: string }) => Outcome<null>;
  openRelay: (message: { peerId: string }) => Outcome<PeerRelay>;
  openSession: (message: SessionAddress & { request: string; requestId: string }) => Outcome<string>;
  askSession: (message: SessionAddress & { request: string }) => Outcome<string>;
  closeSession: (message: SessionAddress) => Outcome<null>;
  hangUp: (message: { componentId: string }) => Outcome<null>;
};

/** What a successful call returns. */
export type RoomAnswer<K extends keyof RoomCalls> = ReplyOf<RoomCalls, K> extends Outcome<infer T> ? T : never;

export type RoomProtocol = RoomCalls & {
  attach: (message: AttachRequest) => AttachAnswer;
  /** What a client sent to the room before it moved here, which its former node has not reported. */
  lateData: (message: LateData) => void;
  fromPeer: (message: { peerId: string; connection: number; request: PeerRequest }) => void;
  fromComponent: (message: { componentId: string; report: ComponentReport }) => void;
  fromMedia: (message: { event: MediaRoomEvent }) => void;
  /** A `dataMessage` or `dataPacket` event, which may be dropped when the mailbox is full. */
  fromData: (message: { event: MediaRoomEvent }) => void;
  peerDown: (message: { peerId: string; down: Down }) => void;
  peerless: (message: object) => void;
  returns: (message: object) => void;
  newcomers: (message: object) => void;
  qualities: (message: object) => void;
  peerOverdue: (message: { peerId: string }) => void;
  /** The websocket address of the node that continues the room if this one is lost. */
  standby: (message: { url: string | null }) => void;
  /** Gives the room to another node. Other messages wait meanwhile. Returns why the room stays, or null. */
  move: (message: { carry: Carry }) => string | null;
  /** The room at the new owner has ended, or is cut off. */
  relayDown: (message: { reason: Down['reason'] }) => void;
  relayOver: (message: object) => void;
  /** The media here ends for those who have not gone over to the new owner. */
  farewellOver: (message: object) => void;
} & SocketWatch;
export type RoomRef = ActorRef<RoomProtocol>;

export type LateData = Pick<MediaRoomEvent & { type: 'dataMessage' }, 'peerId' | 'label' | 'to' | 'data'>;

/** Carries one room to another node (docs/reference/moving.md). */
export interface Carry {
  /** The other node owns the room already, in whatever state: it has taken it over as its standby. */
  readonly isTaken?: boolean;
  /** The other node; absent if only the room that runs there says which it is. */
  readonly node?: string;
  /**
   * Offers the room, whose requests have waited for `frozenMs` already. Resolves with why it stays here, or null when
   * another node can run it.
   */
  offer(snapshot: RoomSnapshot, frozenMs: number): Promise<string | null>;
  /**
   * Decides the move: from now on the room must not run here. Resolves when it runs at the new owner, or with undefined
   * when nobody here can know whether it does; rejects when it is lost. Undefined: the move has been given up, and the
   * room stays.
   */
  given(): Promise<RoomRef | undefined> | undefined;
  /** Called when nothing is passed on any more. */
  over(): void;
}

const port = integer(0, 65_535);
const peerRelay: Shape<PeerRelay> = object({
  address: text(),
  secondAddress: optional(text()),
  port,
  tcpPort: nullable(port),
  tls: optional(object({ host: text(), port })),
  username: text(),
  password: text(),
});
const none = outcome(constant(null));
const addedPeer = outcome(object({ peer: peerView, token: text(), websocketUrl: text() }));
const track = { peerId: id, trackId: id };
const session = { roomId: id, peerId: id, sessionId: id };
const component = { componentId: id };

/** Other nodes may send a room calls from the faces and reports about its sockets; its own parts are on its node. */
export const ROOM_SHAPES: Shapes<RoomProtocol> = {
  getRoom: takes({}, outcome(roomView)),
  updateRoom: takes({ changes: roomChanges }, outcome(roomView)),
  deleteRoom: takes({ why: optional(constant('node_closing')) }, none),
  addPeer: takes({ options: json }, addedPeer),
  addGuest: takes(
    {
      invitation: object({ id: text(100), uses: count, createdAt: number, expiresAt: number }),
      options: json,
      counts: optional(flag),
      returns: optional(id),
    },
    addedPeer,
  ),
  updatePeer: takes({ peerId: id, changes: peerChanges }, outcome(peerView)),
  describedPeers: takes({}, outcome(list(id))),
  peersWithClient: takes({ client: text() }, outcome(list(id))),
  removePeer: takes({ peerId: id, reason: nullable(CLOSE_REASON) }, none),
  muteTrack: takes({ ...track, muted: flag }, outcome(trackView)),
  removeTrack: takes(track, none),
  sendMessage: takes(
    { topic: messageTopic, data: messageData, to: nullable(list(id, MAX_RECEIVERS)) },
    outcome(object({ delivered: count })),
  ),
  addComponent: takes({ kind: componentType, options: json }, outcome(componentView)),
  removeComponent: takes(component, none),
  updateComponent: takes({ ...component, paused: flag }, outcome(componentView)),
  subscribeComponent: takes({ ...component, origins: list(id, MAX_ORIGINS) }, none),
  dial: takes({ ...component, phoneNumber: text() }, none),
  hangUp: takes(component, none),
  openRelay: takes({ peerId: id }, outcome(peerRelay)),
  openSession: takes({ ...session, request: text(), requestId: text() }, outcome(text())),
  askSession: takes({ ...session, request: text() }, outcome(text())),
  closeSession: takes(session, none),
  attach: takes(
    {
      peerId: id,
      socket: actor(() => SOCKET_SHAPES),
      client: oneOf(CLIENT_KINDS),
      replaces: nullable(actor(() => SOCKET_SHAPES)),
      resumes: optional(constant(true)),
    },
    attachAnswer(() => ROOM_SHAPES),
  ),
  lateData: takes({ peerId: id, label: text(), to: list(id), data: either(text(), bytes) }),
  socketDown: takes({
    peerId: id,
    socket: actor(() => SOCKET_SHAPES),
    end: optional(oneOf(SOCKET_ENDS)),
    returns: optional(flag),
  }),
  fromPeer: LOCAL,
  fromComponent: LOCAL,
  fromMedia: LOCAL,
  fromData: LOCAL,
  peerDown: LOCAL,
  peerless: LOCAL,
  returns: LOCAL,
  newcomers: LOCAL,
  qualities: LOCAL,
  peerOverdue: LOCAL,
  standby: LOCAL,
  move: LOCAL,
  relayDown: LOCAL,
  relayOver: LOCAL,
  farewellOver: LOCAL,
};
