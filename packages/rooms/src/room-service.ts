import type { ComponentType } from './component-schemas.js';

/** What the faces (HTTP, websockets) may ask of the rooms, whichever node of the cluster owns them. */

export type EndpointType = 'webrtc' | ComponentType;
/** Codecs that a room may require. Without a requirement, clients send one of these unless they ask for another. */
export const VIDEO_CODECS = ['h264', 'vp8'] as const;
export type VideoCodec = (typeof VIDEO_CODECS)[number];
/** Video codecs that HLS streams and recordings with `anyCodec` take. */
export const RECORDED_VIDEO_CODECS = [...VIDEO_CODECS, 'vp9'] as const;

export interface RoomConfig {
  /** Generated (UUID v4) when null. */
  roomId: string | null;
  /** null = unlimited; 0 = no peers at all. */
  maxPeers: number | null;
  videoCodec: VideoCodec | null;
  webhookUrl: string | null;
  /** Seconds; null = off. */
  peerlessPurgeTimeout: number | null;
  /** Seconds; null = off. */
  peerDisconnectedTimeout: number | null;
  /** The name from which the id was derived; absent where it is the id. */
  name?: string;
  /** Labels of data channels whose messages are sent to the backend; absent when there are none. */
  dataEvents?: readonly string[];
}

/** The configuration of a room created without options. */
export const defaultRoomConfig: RoomConfig = {
  roomId: null,
  maxPeers: null,
  videoCodec: null,
  webhookUrl: null,
  peerlessPurgeTimeout: null,
  peerDisconnectedTimeout: null,
};

/** The configuration of an existing room. `metadata` is set by the backend and absent until then. */
export type NamedConfig = RoomConfig & { roomId: string; metadata?: unknown };

/** Absent fields keep their value; null removes metadata and data events. */
export type RoomChanges = Partial<Pick<RoomConfig, 'maxPeers' | 'peerlessPurgeTimeout' | 'peerDisconnectedTimeout'>> & {
  dataEvents?: readonly string[] | null;
  metadata?: unknown;
};

export type PublishKind = 'audio' | 'video' | 'data';

/** What the client of a peer may do. */
export interface PeerPermissions {
  /** True for all kinds, false for none. */
  publish: boolean | readonly PublishKind[];
  /** The client receives the tracks of others. */
  subscribe: boolean;
  /** Others see the client's own metadata. */
  metadata: boolean;
}

/** Absent and null fields keep their value. */
export type PermissionChanges = { [K in keyof PeerPermissions]?: PeerPermissions[K] | null | undefined };

/** Absent fields keep their value; null removes the backend's metadata. */
export interface PeerChanges {
  metadata?: unknown;
  /** Replaces these fields of the backend's metadata if that is an object: others change the rest at the same time. */
  fields?: Record<string, unknown>;
  permissions?: PermissionChanges;
}

/** A track of a peer. */
export interface TrackAddress {
  peerId: string;
  trackId: string;
}

/** A message from the backend to clients. */
export interface RoomMessage {
  topic: string;
  /** JSON */
  data: unknown;
}

export interface TrackView {
  id: string;
  type: 'audio' | 'video';
  metadata: unknown;
  /** True while the backend withholds the track; absent if it never has. */
  muted?: boolean;
}

export interface PeerView {
  id: string;
  type: 'webrtc';
  status: 'connected' | 'disconnected';
  tracks: TrackView[];
  metadata: unknown;
  /** Absent unless the backend has set any. */
  permissions?: PeerPermissions;
}

export interface ComponentView {
  id: string;
  type: ComponentType;
  properties: Record<string, unknown>;
  tracks: TrackView[];
}

export interface RoomView {
  id: string;
  config: NamedConfig;
  components: ComponentView[];
  peers: PeerView[];
}

/** A new room, and where clients reach the node that owns it. */
export interface CreatedRoom {
  room: RoomView;
  address: string;
}

/** A new peer and what its client needs to connect. */
export interface AddedPeer {
  peer: PeerView;
  token: string;
  /** `JF_HOST` of the node that owns the room, followed by `/socket/peer/websocket`. */
  websocketUrl: string;
}

/** One use of an invitation, as the node that checked its signature reports it. */
export interface InvitationUse {
  id: string;
  /** Number of guests that it admits; 0 = as many as the room holds. */
  uses: number;
  /** Creation time of the invitation's room, Unix milliseconds. */
  createdAt: number;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** A person with an invitation. */
export interface Guest {
  invitation: InvitationUse;
  options: unknown;
  /** False for an agent or a recorder: it takes no place in the room and does not keep it. Default true. */
  counts?: boolean;
  /** Id of the guest's peer, which is taken instead of a new one if it is expected back after a move of the room. */
  returns?: string;
}

/** A failure that callers can handle; the faces map `code` to a status or close reason in one table. */
export type RoomErrorCode =
  /** No room has this id. */
  | 'ROOM_NOT_FOUND'
  /** A room with this id exists, or is being created. */
  | 'ROOM_EXISTS'
  /** The room could not be started; the log has the reason. */
  | 'ROOM_FAILED'
  /** The room has no such peer. */
  | 'PEER_NOT_FOUND'
  /** The peer publishes no such track. */
  | 'TRACK_NOT_FOUND'
  /** Another client is connected as this peer. */
  | 'PEER_CONNECTED'
  /** The peer has connected too often in a short time. */
  | 'TOO_MANY_CONNECTIONS'
  /** The session of a WHIP or WHEP client does not exist, or has ended. */
  | 'SESSION_NOT_FOUND'
  /** The room has reached its limit of peers. */
  | 'PEER_LIMIT'
  /** The invitation has admitted all its guests. */
  | 'INVITATION_USED'
  /** The room tracks too many invitations to count another. */
  | 'INVITATION_LIMIT'
  /** The server runs without WebRTC. */
  | 'PEER_TYPE_DISABLED'
  /** The room has no such component. */
  | 'COMPONENT_NOT_FOUND'
  /** The server does not offer components of this type. */
  | 'COMPONENT_TYPE_DISABLED'
  /** The room has reached its limit of components of this type. */
  | 'COMPONENT_LIMIT'
  /** The component cannot work with the room's video codec. */
  | 'INCOMPATIBLE_CODEC'
  /** An option of the component has a wrong value. */
  | 'INVALID_OPTIONS'
  /** A required option of the component is missing. */
  | 'MISSING_OPTION'
  /** The file to be played does not exist. */
  | 'FILE_NOT_FOUND'
  /** The component does not accept subscriptions. */
  | 'NOT_SUBSCRIBABLE'
  /** The component subscribes by itself. */
  | 'SUBSCRIBE_MODE_AUTO'
  /** Only SIP components dial. */
  | 'NOT_A_SIP_COMPONENT'
  /** Only recordings can be paused. */
  | 'NOT_A_RECORDING'
  /** The room is, or may be, on a node that does not answer, or may go on at another one soon. */
  | 'OWNER_UNREACHABLE'
  /** A member of the cluster is not answering. */
  | 'MEMBER_SILENT'
  /** No node can take the room. */
  | 'NO_NODE'
  /** This node accepts no new rooms, or is about to end the room. */
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

/** The session of a client that sends requests, and its peer. */
export interface SessionAddress {
  roomId: string;
  peerId: string;
  sessionId: string;
}

/** Where a peer's client reaches the relay, and its credentials there. */
export interface PeerRelay {
  address: string;
  /** Address of the other family, if there is one. */
  secondAddress?: string;
  port: number;
  /** null = the relay has no TCP port. */
  tcpPort: number | null;
  /** The relay over TLS, if there is one; the host is the name in its certificate. */
  tls?: { host: string; port: number };
  username: string;
  password: string;
}

/** Why a peer websocket was refused. SDKs compare this close reason. */
export type AttachRefusal =
  | 'invalid token'
  | 'expired token'
  | 'room not found'
  | 'peer not found'
  | 'peer already connected'
  | 'too many connections';

export interface PeerAddress {
  roomId: string;
  peerId: string;
}

/** A peer's websocket, as its actor uses it. */
export interface PeerSocket {
  /** JSON text of one media event. */
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Resolves true as soon as the other end answers, false after `timeoutMs`. */
  ping(timeoutMs: number): Promise<boolean>;
}

/** How the websocket of a peer ended. `silent`: it did not answer pings; `too_slow`: it did not read. */
export type SocketEnd = 'closed_by_client' | 'closed_by_server' | 'connection_lost' | 'silent' | 'too_slow';

/** An attached peer, as its websocket uses it. */
export interface AttachedPeer {
  /** JSON text of one media event, as received. */
  receive(text: string): void;
  /** Reports that the socket has closed; only the first `end` is logged. Idempotent. */
  detach(end: SocketEnd): void;
  /**
   * Leaves a LiveKit client's session without a socket until the client resumes through another node. Absent if the
   * session is on this node, and so ends with it.
   */
  handOver?(): void;
}

/** The rooms of this node or of the whole cluster. */
export interface RoomService {
  /**
   * Returns the same rooms on behalf of a request: every message, log line and notification that its calls cause
   * carries the id, on other nodes too.
   */
  forRequest(requestId: string): RoomService;
  createRoom(config: RoomConfig): Promise<CreatedRoom>;
  listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }>;
  getRoom(roomId: string): Promise<RoomView>;
  /**
   * Returns when a room was created, in Unix milliseconds: the same on every node, and different for a later room of
   * the same id.
   */
  createdAt(roomId: string): Promise<number>;
  updateRoom(roomId: string, changes: RoomChanges): Promise<RoomView>;
  deleteRoom(roomId: string): Promise<void>;
  /** `options` as the caller sent them; the room checks its own limits first, then the options. */
  addPeer(roomId: string, options: unknown): Promise<AddedPeer>;
  /** Adds the peer of a guest, if the invitation is to this room and has a use left. `options` as for `addPeer`. */
  addGuest(roomId: string, guest: Guest): Promise<AddedPeer>;
  updatePeer(roomId: string, peerId: string, changes: PeerChanges): Promise<PeerView>;
  /** Returns the ids of the peers whose metadata the backend has set; a client's own may look the same. */
  describedPeers(roomId: string): Promise<string[]>;
  /** Returns the ids of the peers whose latest client is of this kind; see `client` of the action `join`. */
  peersWithClient(roomId: string, client: string): Promise<string[]>;
  /** `reason`: close reason of the peer's websocket, at most 123 bytes; "Peer removed" by default. */
  removePeer(roomId: string, peerId: string, options?: { reason?: string }): Promise<void>;
  /** Withholds a peer's track from everyone, or releases it. */
  muteTrack(roomId: string, track: TrackAddress & { muted: boolean }): Promise<TrackView>;
  /** Ends a peer's track; its client cannot publish it again under this id. */
  removeTrack(roomId: string, track: TrackAddress): Promise<void>;
  /** Sends a message to the clients of these peers, or of all. Returns the number of clients it was sent to. */
  sendMessage(roomId: string, message: RoomMessage & { to?: readonly string[] }): Promise<{ delivered: number }>;
  /** `options` as the caller sent them; the room checks them after the kind, the codec and the limit. */
  addComponent(roomId: string, type: ComponentType, options: unknown): Promise<ComponentView>;
  removeComponent(roomId: string, componentId: string): Promise<void>;
  /** Pauses or resumes a recording. */
  updateComponent(roomId: string, componentId: string, changes: { paused: boolean }): Promise<ComponentView>;
  subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void>;
  dial(roomId: string, componentId: string, phoneNumber: string): Promise<void>;
  hangUp(roomId: string, componentId: string): Promise<void>;
  /** Checks the token and marks the peer connected. The socket sends `authenticated` once this resolves with a peer. */
  attachPeer(token: string, socket: PeerSocket, client?: 'sdk' | 'livekit'): Promise<AttachedPeer | AttachRefusal>;
  /** Gives the session of a connected LiveKit client another socket. The caller has checked who the client is. */
  resumePeer(address: PeerAddress, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal>;
  /** Returns the peer for which the token was issued, whether or not it still exists. */
  readToken(token: string): { roomId: string; peerId: string } | 'invalid token' | 'expired token';
  /**
   * Returns the relay of a peer. That of a disconnected peer serves it for 30 s after the last call, so that its client
   * can gather candidates before it connects.
   */
  openRelay(roomId: string, peerId: string): Promise<PeerRelay>;
  /**
   * Connects a peer whose client sends requests instead of holding a websocket, and returns the answer to the first
   * request. The session lives on the node of the room.
   */
  openSession(session: SessionAddress, request: string): Promise<string>;
  /** Returns the answer to a later request of the client. */
  askSession(session: SessionAddress, request: string): Promise<string>;
  /** Disconnects the peer. */
  closeSession(session: SessionAddress): Promise<void>;
}
