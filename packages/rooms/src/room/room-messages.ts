/** Messages of the room actor. Plain data and actor refs throughout, because calls come from other nodes too. */
import type { ActorRef, Down, ReplyOf } from '@bloom/actors';
import type { MediaRoomEvent } from '@bloom/sfu';
import type { ComponentType } from '../component-schemas.js';
import type { Outcome } from '../outcome.js';
import type { AttachAnswer, AttachRequest, SocketWatch } from '../peer/peer-messages.js';
import type { PeerRequest } from '../peer/peer-session.js';
import type {
  AddedPeer,
  ComponentView,
  PeerChanges,
  PeerView,
  RoomChanges,
  RoomMessage,
  RoomView,
  SessionAddress,
  TrackAddress,
  TrackView,
} from '../room-service.js';
import type { ComponentReport } from './component-kind.js';

/** What the faces may ask of a room: `Rooms` sends each call to the room's actor, on whichever node it runs. */
export type RoomCalls = {
  getRoom: (message: object) => Outcome<RoomView>;
  updateRoom: (message: { changes: RoomChanges }) => Outcome<RoomView>;
  /** `why` is for the log; default `deleted`. */
  deleteRoom: (message: { why?: 'node_closing' }) => Outcome<null>;
  addPeer: (message: { options: unknown }) => Outcome<AddedPeer>;
  updatePeer: (message: { peerId: string; changes: PeerChanges }) => Outcome<PeerView>;
  removePeer: (message: { peerId: string; reason: string | null }) => Outcome<null>;
  muteTrack: (message: TrackAddress & { muted: boolean }) => Outcome<TrackView>;
  removeTrack: (message: TrackAddress) => Outcome<null>;
  /** `to` null = all peers. */
  sendMessage: (message: RoomMessage & { to: readonly string[] | null }) => Outcome<{ delivered: number }>;
  addComponent: (message: { kind: ComponentType; options: unknown }) => Outcome<ComponentView>;
  removeComponent: (message: { componentId: string }) => Outcome<null>;
  subscribeComponent: (message: { componentId: string; origins: readonly string[] }) => Outcome<null>;
  dial: (message: { componentId: string; phoneNumber: string }) => Outcome<null>;
  openSession: (message: SessionAddress & { request: string; requestId: string }) => Outcome<string>;
  askSession: (message: SessionAddress & { request: string }) => Outcome<string>;
  closeSession: (message: SessionAddress) => Outcome<null>;
  hangUp: (message: { componentId: string }) => Outcome<null>;
};

/** What a successful call returns. */
export type RoomAnswer<K extends keyof RoomCalls> = ReplyOf<RoomCalls, K> extends Outcome<infer T> ? T : never;

export type RoomProtocol = RoomCalls & {
  attach: (message: AttachRequest) => AttachAnswer;
  fromPeer: (message: { peerId: string; connection: number; request: PeerRequest }) => void;
  fromComponent: (message: { componentId: string; report: ComponentReport }) => void;
  fromMedia: (message: { event: MediaRoomEvent }) => void;
  /** A `dataMessage` event. It may be dropped when the mailbox is full. */
  fromData: (message: { event: MediaRoomEvent }) => void;
  peerDown: (message: { peerId: string; down: Down }) => void;
  peerless: (message: object) => void;
  peerOverdue: (message: { peerId: string }) => void;
} & SocketWatch;
export type RoomRef = ActorRef<RoomProtocol>;
