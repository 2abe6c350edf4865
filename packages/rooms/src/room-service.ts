/** What the faces (HTTP, websockets) may ask of the rooms, whichever node of the cluster owns them. */
import type { EndpointType, VideoCodec } from './peer-session.js';

export interface RoomConfig {
  /** Generated (UUID v4) when null. */
  roomId: string | null;
  /** null = unlimited; 0 = nobody. */
  maxPeers: number | null;
  videoCodec: VideoCodec | null;
  webhookUrl: string | null;
  /** Seconds; null = off. */
  peerlessPurgeTimeout: number | null;
  /** Seconds; null = off. */
  peerDisconnectedTimeout: number | null;
}

/** A room about which nobody asks for anything. */
export const defaultRoomConfig: RoomConfig = {
  roomId: null,
  maxPeers: null,
  videoCodec: null,
  webhookUrl: null,
  peerlessPurgeTimeout: null,
  peerDisconnectedTimeout: null,
};

export interface TrackView {
  id: string;
  type: 'audio' | 'video';
  metadata: unknown;
}

export interface PeerView {
  id: string;
  type: 'webrtc';
  status: 'connected' | 'disconnected';
  tracks: TrackView[];
  metadata: unknown;
}

export type ComponentType = Exclude<EndpointType, 'webrtc'>;

export interface ComponentView {
  id: string;
  type: ComponentType;
  properties: Record<string, unknown>;
  tracks: TrackView[];
}

export interface RoomView {
  id: string;
  config: RoomConfig & { roomId: string };
  components: ComponentView[];
  peers: PeerView[];
}

export interface PeerOptions {
  enableSimulcast: boolean;
}

/** A failure that the caller can act on; faces map `code` to a status or close reason in one table. */
export type RoomErrorCode =
  | 'ROOM_NOT_FOUND'
  | 'ROOM_EXISTS'
  | 'ROOM_FAILED'
  | 'PEER_NOT_FOUND'
  | 'PEER_LIMIT'
  | 'PEER_TYPE_DISABLED'
  | 'COMPONENT_NOT_FOUND'
  | 'COMPONENT_TYPE_DISABLED'
  | 'COMPONENT_LIMIT'
  | 'INCOMPATIBLE_CODEC'
  | 'INVALID_OPTIONS'
  | 'MISSING_OPTION'
  | 'FILE_NOT_FOUND'
  | 'NOT_SUBSCRIBABLE'
  | 'SUBSCRIBE_MODE_AUTO'
  | 'NOT_A_SIP_COMPONENT'
  | 'OWNER_UNREACHABLE'
  | 'NO_NODE'
  | 'DRAINING';

export class RoomError extends Error {
  override readonly name = 'RoomError';
  constructor(
    readonly code: RoomErrorCode,
    /** A sentence with the offending value; the HTTP face sends it as `errors`. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Why a peer websocket was not accepted; the close reason that the client SDKs compare. */
export type AttachRefusal =
  | 'invalid token'
  | 'expired token'
  | 'room not found'
  | 'peer not found'
  | 'peer already connected';

/** The rooms' side of a peer websocket: what the peer actor does with the socket. */
export interface PeerSocket {
  /** JSON text of one media event. */
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Resolves true as soon as the other end shows life, false after `timeoutMs`. */
  ping(timeoutMs: number): Promise<boolean>;
}

/** The socket's side of an attached peer. */
export interface AttachedPeer {
  /** JSON text of one media event, as it came. */
  receive(text: string): void;
  /** The socket is gone, for whatever reason. Idempotent. */
  detach(): void;
}

export interface RoomService {
  /**
   * The same service in the name of a request: what is done, logged and told to other nodes on its behalf carries that
   * id. Absent: ids go no further.
   */
  forRequest?(requestId: string): RoomService;
  createRoom(config: RoomConfig): Promise<{ room: RoomView; address: string }>;
  listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }>;
  getRoom(roomId: string): Promise<RoomView>;
  deleteRoom(roomId: string): Promise<void>;
  /**
   * `options` is what the caller sent: `PeerOptions`, all fields optional. It is checked here, after the room, the limit
   * and the switch for peers of this type: `INVALID_OPTIONS` when it is no object or a field has another type.
   */
  addPeer(roomId: string, options: unknown): Promise<{ peer: PeerView; token: string; websocketUrl: string }>;
  removePeer(roomId: string, peerId: string): Promise<void>;
  /** `options` is what the caller sent; it is checked here, after the room, the kind, the codec and the limit. */
  addComponent(roomId: string, type: ComponentType, options: unknown): Promise<ComponentView>;
  removeComponent(roomId: string, componentId: string): Promise<void>;
  subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void>;
  dial(roomId: string, componentId: string, phoneNumber: string): Promise<void>;
  hangUp(roomId: string, componentId: string): Promise<void>;
  /** Checks the token and marks the peer connected; the socket sends `authenticated` when this resolves with a peer. */
  attachPeer(token: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal>;
}

/** The service in the name of a request, if there is one. */
export function requested(rooms: RoomService, requestId: string | undefined): RoomService {
  return (requestId === undefined ? undefined : rooms.forRequest?.(requestId)) ?? rooms;
}
