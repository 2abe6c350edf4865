// The shapes of the HTTP API (docs/reference/http-api.md).

/** Options of a new room. */
export interface RoomOptions {
  /** Letters, digits and hyphens; generated when absent. */
  roomId?: string;
  /** Unlimited when absent. */
  maxPeers?: number;
  /** Any supported codec when absent. */
  videoCodec?: 'h264' | 'vp8';
  /** http(s) URL that receives every notification of the room; see `parseWebhook`. */
  webhookUrl?: string;
  /** Seconds without a connected peer after which the room is removed; never when absent. */
  peerlessPurgeTimeout?: number;
  /** Seconds after which a disconnected peer is removed; never when absent. */
  peerDisconnectedTimeout?: number;
  /** Labels of data channels whose messages come as `dataMessage`; none when absent. */
  dataEvents?: readonly string[];
}

/** All rooms as a connection begins, from `notifications({ reconnect: true })`. */
export interface RoomSnapshot {
  type: 'snapshot';
  rooms: Room[];
  /** Nodes that did not answer: their rooms are missing, and may go on. */
  unreachable: string[];
}

/** Configuration of a room; null = not set. */
export interface RoomConfig {
  roomId: string;
  maxPeers: number | null;
  videoCodec: 'h264' | 'vp8' | null;
  webhookUrl: string | null;
  peerlessPurgeTimeout: number | null;
  peerDisconnectedTimeout: number | null;
  /** Absent without any. */
  dataEvents?: readonly string[];
  /** Set with `updateRoom`; absent until then. */
  metadata?: unknown;
}

/** Absent fields stay as they are; null unsets. */
export interface RoomChanges {
  maxPeers?: number | null;
  peerlessPurgeTimeout?: number | null;
  peerDisconnectedTimeout?: number | null;
  dataEvents?: readonly string[] | null;
  /** Any JSON value. */
  metadata?: unknown;
}

/** Track of a peer or a component. */
export interface Track {
  id: string;
  type: 'audio' | 'video';
  metadata: unknown;
  /** Set with `muteTrack`; absent until then. */
  muted?: boolean;
}

/** Participant of a room. */
export interface Peer {
  id: string;
  type: 'webrtc';
  status: 'connected' | 'disconnected';
  tracks: Track[];
  /**
   * Metadata sent by the client when it joined; null before. Once the backend has set some, `{ peer, server }` with that of
   * the client and that of the backend.
   */
  metadata: unknown;
  /** Absent unless the backend has given any. */
  permissions?: PeerPermissions;
}

/** What the client of a peer may do. */
export interface PeerPermissions {
  /** True for every kind, false for none. */
  publish: boolean | ('audio' | 'video' | 'data')[];
  /** Receives the tracks of others. */
  subscribe: boolean;
  /** Its own metadata is shown. */
  metadata: boolean;
}

/** Options of a new peer. */
export interface PeerOptions {
  /** Default true. */
  enableSimulcast?: boolean;
  /** Any JSON value that the backend says of the peer, up to 64 KiB. */
  metadata?: unknown;
  /** All true by default. */
  permissions?: Partial<PeerPermissions>;
  /** Seconds for which the token is valid; 24 hours by default. */
  ttl?: number;
}

/** Absent fields stay as they are. */
export interface PeerChanges {
  /** Null removes what the backend has set. */
  metadata?: unknown;
  permissions?: Partial<PeerPermissions>;
}

/** A message to clients. */
export interface RoomMessage {
  /** 1 to 256 characters. */
  topic: string;
  /** Any JSON value of up to 16 KiB. */
  data: unknown;
  /** Ids of the peers to receive it; all of the room when absent. */
  to?: readonly string[];
}

/** Bucket of an S3-compatible store, and the key to write to it. */
export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
}

/** Options of each kind of component; the server's defaults apply to absent ones. */
export interface ComponentOptions {
  hls: {
    lowLatency?: boolean;
    /** Seconds; the whole stream stays in the playlist when absent. */
    targetWindowDuration?: number;
    persistent?: boolean;
    subscribeMode?: 'auto' | 'manual';
    s3?: S3Credentials;
  };
  rtsp: {
    /** Address with the scheme `rtsp`, `rtsps`, `srt`, `rtmp` or `rtmps`. */
    sourceUri: string;
    /** Local port of RTP over UDP; unused over TCP. */
    rtpPort?: number;
    /** Milliseconds. */
    reconnectDelay?: number;
    /** Milliseconds. */
    keepAliveInterval?: number;
    pierceNat?: boolean;
  };
  file: {
    /** Relative to the server's `file_component_sources`; `.h264` or `.ogg`. */
    filePath: string;
    framerate?: number;
  };
  recording: {
    credentials?: S3Credentials;
    pathPrefix?: string;
    subscribeMode?: 'auto' | 'manual';
  };
  sip: {
    registrarCredentials: { address: string; username: string; password: string };
  };
}

/** Kind of a component. */
export type ComponentType = keyof ComponentOptions;

/** What each kind of component shows of itself. */
export interface ComponentProperties {
  hls: {
    /** True once there is something to play. */
    playable: boolean;
    lowLatency: boolean;
    persistent: boolean;
    targetWindowDuration: number | null;
    subscribeMode: 'auto' | 'manual';
    /** Credentials are never shown. */
    s3: null;
  };
  rtsp: {
    /** Credentials are replaced by `***`. */
    sourceUri: string;
    rtpPort: number;
    reconnectDelay: number;
    keepAliveInterval: number;
    pierceNat: boolean;
  };
  file: { filePath: string; framerate: number | null };
  recording: { subscribeMode: 'auto' | 'manual' };
  sip: { registrarCredentials: { address: string; username: string; password: string } };
}

/** A component of kind `T`; `Component` alone is any of them, distinguished by `type`. */
export type Component<T extends ComponentType = ComponentType> = {
  [K in T]: { id: string; type: K; properties: ComponentProperties[K]; tracks: Track[] };
}[T];

/** Room with everything in it. */
export interface Room {
  id: string;
  config: RoomConfig;
  components: Component[];
  peers: Peer[];
}

/** State of the node that was asked. */
export interface Health {
  status: 'UP';
  /** Seconds. */
  uptime: number;
  version: string;
  gitCommit: string;
  /** Present while the node takes no new rooms, because it was asked to or because it ends. */
  draining?: true;
  distribution: { enabled: boolean; nodeStatus: 'UP' | 'DOWN'; nodesInCluster: number };
}

/** The publisher of a track. */
export type TrackOwner = { peerId: string } | { componentId: string };

/** An event of a room anywhere in the cluster. Each comes once, in order per room. */
export type Notification =
  | { type: 'roomCreated' | 'roomDeleted' | 'roomCrashed' | 'hlsUploaded' | 'hlsUploadCrashed'; roomId: string }
  | { type: 'peerAdded' | 'peerDeleted' | 'peerConnected' | 'peerDisconnected'; roomId: string; peerId: string }
  | { type: 'peerCrashed'; roomId: string; peerId: string; reason: string }
  | { type: 'peerMetadataUpdated'; roomId: string; peerId: string; metadata: unknown }
  | { type: 'componentCrashed' | 'hlsPlayable'; roomId: string; componentId: string }
  | { type: 'trackAdded' | 'trackRemoved' | 'trackMetadataUpdated'; roomId: string; owner: TrackOwner; track: Track }
  | DataMessage;

/** What a client sent on a data channel whose label is in `dataEvents` of its room. */
export interface DataMessage {
  type: 'dataMessage';
  roomId: string;
  /** The sender. */
  peerId: string;
  label: string;
  /** Ids of the receivers; empty when the message was for everybody. */
  to: string[];
  /** Text as a string, anything else as bytes. */
  data: string | Uint8Array;
}
