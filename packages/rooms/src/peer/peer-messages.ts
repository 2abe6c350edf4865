/** Messages of peer and socket actors: plain data and actor refs only, because they cross nodes. */
import { actor, flag, integer, LOCAL, takes, text, type ActorRef, type Shape, type Shapes } from '@bloom/actors';
import type { AttachRefusal, PeerPermissions, PeerRelay, RoomMessage, SocketEnd } from '../room-service.js';
import type { TrackKind } from '@bloom/sfu';
import type { ClientKind, SessionInput, SessionTimer } from './peer-session.js';
import type { ExpectedTracks } from './track-names.js';

/**
 * The actor that represents one client: a websocket on the node that accepted it, or a session of requests on the node
 * of the room.
 */
export type SocketProtocol = {
  send: (message: { text: string }) => void;
  close: (message: { code: number; reason: string }) => void;
  /** Returns whether the client answers within that time. */
  ping: (message: { timeoutMs: number }) => boolean;
  /** Binds the socket to its peer: it closes when the peer ends. */
  bind: (message: { peer: PeerRef }) => void;
  peerDown: (message: object) => void;
};
export type SocketRef = ActorRef<SocketProtocol>;

/** A client's connection as a peer. A room numbers its connections. */
export interface PeerConnection {
  number: number;
  socket: SocketRef;
  client: ClientKind;
}

export type PeerProtocol = {
  /**
   * A socket has authenticated as this peer. The connection number lets the peer ignore messages of earlier
   * connections.
   */
  attached: (message: { connection: PeerConnection }) => void;
  /** Lets the next connection publish tracks of the last one under other ids. */
  expectTracks: (message: { expected: ExpectedTracks }) => void;
  detached: (message: object) => void;
  clientEvent: (message: { socket: SocketRef; text: string }) => void;
  /** Replaces the kinds of tracks that the client may publish, and the full permissions, which the client can read. */
  setPublishes: (message: { kinds: readonly TrackKind[]; permissions: PeerPermissions }) => void;
  /** Delivers a message from the backend to the client. */
  deliver: (message: { message: RoomMessage }) => void;
  input: (message: { input: SessionInput }) => void;
  negotiated: (message: { connection: number; generation: number; receiver?: true }) => void;
  negotiationFailed: (message: { connection: number; generation: number; reason: string }) => void;
  sessionTimer: (message: { connection: number; name: SessionTimer }) => void;
  metadataTick: (message: object) => void;
  outboxTick: (message: object) => void;
  /** Returns the relay of the current connection, or of the next one. */
  openRelay: (message: object) => PeerRelay;
  relayUnused: (message: object) => void;
  /** Returns the last offer and answer, for reports. */
  describe: (message: object) => { offer?: string; answer?: string };
};
export type PeerRef = ActorRef<PeerProtocol>;

/** A socket's request to attach to a peer, made after its token was verified. */
export interface AttachRequest {
  peerId: string;
  socket: SocketRef;
  client: ClientKind;
  /** The socket that was found dead and may be replaced. */
  replaces: SocketRef | null;
  /** A LiveKit client goes on with its session through this socket in place of its former one. */
  resumes?: true;
}

/** What a room receives about its peers' sockets. */
export interface SocketLoss {
  /** Absent: the connection was lost, because the socket's actor or its node has died. */
  end?: SocketEnd;
  /** The socket's node stops, and the client comes back through another one. */
  returns?: boolean;
}

export type SocketWatch = {
  socketDown: (message: { peerId: string; socket: SocketRef } & SocketLoss) => void;
};

export type AttachAnswer =
  /** Nodes that run an older release omit `room`. */
  | { result: 'attached'; peer: PeerRef; room?: ActorRef<SocketWatch> }
  | { result: 'refused'; reason: AttachRefusal }
  /** Another socket is attached to the peer: ping it, then attach again with `replaces` or give up. */
  | { result: 'occupied'; by: SocketRef };

/** Reason of a close frame, at most 123 bytes (RFC 6455, section 5.5). */
export const CLOSE_REASON: Shape<string> = (value, reading) =>
  typeof value === 'string' && Buffer.byteLength(value) <= 123 ? value : reading.fail('a text of at most 123 bytes');

/** Codes with which a server may close (RFC 6455, section 7.4). */
const CLOSE_CODE: Shape<number> = (value, reading) => {
  const read = integer(1000, 4999)(value, reading);

  return typeof read === 'number' && (read >= 3000 || (read <= 1014 && (read < 1004 || read > 1006)))
    ? read
    : reading.fail('a code of a close frame');
};

const LONGEST_PING_MS = 60_000;

export const SOCKET_SHAPES: Shapes<SocketProtocol> = {
  send: takes({ text: text() }),
  close: takes({ code: CLOSE_CODE, reason: CLOSE_REASON }),
  ping: takes({ timeoutMs: integer(0, LONGEST_PING_MS) }, flag),
  bind: takes({ peer: actor(() => PEER_SHAPES) }),
  peerDown: LOCAL,
};

/** A peer lives on the node of its room; only its socket may be on another. */
export const PEER_SHAPES: Shapes<PeerProtocol> = {
  clientEvent: takes({ socket: actor(() => SOCKET_SHAPES), text: text() }),
  attached: LOCAL,
  detached: LOCAL,
  expectTracks: LOCAL,
  setPublishes: LOCAL,
  deliver: LOCAL,
  input: LOCAL,
  negotiated: LOCAL,
  negotiationFailed: LOCAL,
  sessionTimer: LOCAL,
  metadataTick: LOCAL,
  outboxTick: LOCAL,
  openRelay: LOCAL,
  relayUnused: LOCAL,
  describe: LOCAL,
};
