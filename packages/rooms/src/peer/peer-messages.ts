/** Messages of peer and socket actors. Plain data and actor refs throughout, because they cross to other nodes. */
import type { ActorRef } from '@bloom/actors';
import type { AttachRefusal, RoomMessage, SocketEnd } from '../room-service.js';
import type { TrackKind } from '@bloom/sfu';
import type { ClientKind, SessionInput, SessionTimer } from './peer-session.js';

/**
 * The actor in front of one client: of a websocket on the node that accepted it, of a session of requests on the node of the
 * room.
 */
export type SocketProtocol = {
  send: (message: { text: string }) => void;
  close: (message: { code: number; reason: string }) => void;
  /** Returns whether the other end shows life within that time. */
  ping: (message: { timeoutMs: number }) => boolean;
  /** Ties the socket to its peer: it closes when the peer ends. */
  bind: (message: { peer: PeerRef }) => void;
  peerDown: (message: object) => void;
};
export type SocketRef = ActorRef<SocketProtocol>;

/** A client that speaks for a peer. Connections of a room are numbered. */
export interface PeerConnection {
  number: number;
  socket: SocketRef;
  client: ClientKind;
}

export type PeerProtocol = {
  /** A socket has authenticated for this peer. Connections are numbered, so that messages of a former one are ignored. */
  attached: (message: { connection: PeerConnection }) => void;
  detached: (message: object) => void;
  clientEvent: (message: { socket: SocketRef; text: string }) => void;
  /** Replaces the kinds of tracks that the client may publish. */
  setPublishes: (message: { kinds: readonly TrackKind[] }) => void;
  /** Delivers a message of the backend to the client. */
  deliver: (message: { message: RoomMessage }) => void;
  input: (message: { input: SessionInput }) => void;
  negotiated: (message: { connection: number; generation: number }) => void;
  negotiationFailed: (message: { connection: number; generation: number; reason: string }) => void;
  sessionTimer: (message: { connection: number; name: SessionTimer }) => void;
  metadataTick: (message: object) => void;
  outboxTick: (message: object) => void;
  /** Returns the last offer and answer, for reports. */
  describe: (message: object) => { offer?: string; answer?: string };
};
export type PeerRef = ActorRef<PeerProtocol>;

/** A socket's request to speak for a peer, once its token was verified. */
export interface AttachRequest {
  peerId: string;
  socket: SocketRef;
  client: ClientKind;
  /** The socket that turned out to be dead and may be replaced. */
  replaces: SocketRef | null;
}

/** What a room learns of its peers' sockets. */
export type SocketWatch = {
  /** Without `end` the connection was lost: the actor of the socket, or its node, is gone. */
  socketDown: (message: { peerId: string; socket: SocketRef; end?: SocketEnd }) => void;
};

export type AttachAnswer =
  /** Nodes of earlier versions leave out `room`. */
  | { result: 'attached'; peer: PeerRef; room?: ActorRef<SocketWatch> }
  | { result: 'refused'; reason: AttachRefusal }
  /** Another socket speaks for the peer: ping it, then attach again with `replaces`, or give up. */
  | { result: 'occupied'; by: SocketRef };
