/** What room, peer and socket actors say to each other. Plain data and actor refs throughout, so that it can travel. */
import type { ActorRef, Down } from '@bloom/actors';
import type { MediaRoomEvent, Variant } from '@bloom/sfu';
import type { EndpointTrack, SessionInput, SessionTimer } from './peer-session.js';
import type { Outcome } from './outcome.js';
import type { AttachRefusal, ComponentType, ComponentView, PeerView } from './room-service.js';

/** The actor in front of one accepted websocket, on the node that accepted it. */
export type SocketProtocol = {
  send: (message: { text: string }) => void;
  close: (message: { code: number; reason: string }) => void;
  /** Whether the other end shows life within that time. */
  ping: (message: { timeoutMs: number }) => boolean;
  /** The peer that this socket speaks for: lost with it. */
  bind: (message: { peer: PeerRef }) => void;
  peerDown: (message: object) => void;
};
export type SocketRef = ActorRef<SocketProtocol>;

export type PeerProtocol = {
  /** A socket authenticated for this peer. Connections are numbered, so that what belongs to a former one is told apart. */
  attached: (message: { connection: number; socket: SocketRef }) => void;
  detached: (message: object) => void;
  clientEvent: (message: { socket: SocketRef; text: string }) => void;
  input: (message: { input: SessionInput }) => void;
  negotiated: (message: { connection: number; generation: number }) => void;
  negotiationFailed: (message: { connection: number; generation: number; reason: string }) => void;
  sessionTimer: (message: { connection: number; name: SessionTimer }) => void;
  /** The last offer and answer, for reports. */
  describe: (message: object) => { offer?: string; answer?: string };
};
export type PeerRef = ActorRef<PeerProtocol>;

/** What a peer's session asks of the room, for the connection it was made for. */
export type PeerRequest =
  | { do: 'join'; metadata: unknown }
  | { do: 'leave' }
  | { do: 'setMetadata'; metadata: unknown }
  | { do: 'publish'; tracks: readonly EndpointTrack[] }
  | { do: 'unpublish'; trackIds: readonly string[] }
  | { do: 'setTrackMetadata'; trackId: string; metadata: unknown }
  | { do: 'setEncoding'; trackId: string; encoding: Variant; enabled: boolean }
  | { do: 'fail'; reason: string };

export type AttachAnswer =
  | { result: 'attached'; peer: PeerRef }
  | { result: 'refused'; reason: AttachRefusal }
  /** Another socket speaks for the peer: ask it for life, then attach again with `replaces`, or give up. */
  | { result: 'occupied'; by: SocketRef };

/** What a component says of itself to its room. */
export type ComponentReport =
  | { do: 'publish'; tracks: readonly EndpointTrack[] }
  | { do: 'unpublish'; trackIds: readonly string[] }
  | { do: 'setProperties'; properties: Record<string, unknown> }
  /** HLS: the first playable video playlist. */
  | { do: 'playable'; properties: Record<string, unknown> }
  /** It has come to its natural end. */
  | { do: 'finished' }
  | { do: 'crashed'; reason: string };

export type RoomProtocol = {
  addPeer: (message: { options: unknown }) => Outcome<PeerView>;
  removePeer: (message: { peerId: string }) => Outcome<null>;
  attach: (message: { peerId: string; socket: SocketRef; replaces: SocketRef | null }) => AttachAnswer;
  remove: (message: object) => Outcome<null>;
  addComponent: (message: { kind: ComponentType; options: unknown }) => Outcome<ComponentView>;
  removeComponent: (message: { componentId: string }) => Outcome<null>;
  subscribeComponent: (message: { componentId: string; origins: readonly string[] }) => Outcome<null>;
  dial: (message: { componentId: string; phoneNumber: string }) => Outcome<null>;
  hangUp: (message: { componentId: string }) => Outcome<null>;
  fromPeer: (message: { peerId: string; connection: number; request: PeerRequest }) => void;
  fromComponent: (message: { componentId: string; report: ComponentReport }) => void;
  fromMedia: (message: { event: MediaRoomEvent }) => void;
  socketDown: (message: { peerId: string; socket: SocketRef }) => void;
  peerDown: (message: { peerId: string; down: Down }) => void;
  peerless: (message: object) => void;
  peerOverdue: (message: { peerId: string }) => void;
};
export type RoomRef = ActorRef<RoomProtocol>;
