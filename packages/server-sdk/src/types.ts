/** The shapes of the HTTP API (docs/reference/http-api.md). */

export interface RoomOptions {
  /** Letters, digits and hyphens; generated when absent. */
  roomId?: string;
  /** Absent = unlimited. */
  maxPeers?: number;
  /** Absent = any codec the server supports. */
  videoCodec?: 'h264' | 'vp8';
  /** http(s) URL that gets every notification of the room. */
  webhookUrl?: string;
  /** Seconds without a connected peer after which the room goes; absent = never. */
  peerlessPurgeTimeout?: number;
  /** Seconds after which a disconnected peer is removed; absent = never. */
  peerDisconnectedTimeout?: number;
}

export interface RoomConfig {
  roomId: string;
  maxPeers: number | null;
  videoCodec: 'h264' | 'vp8' | null;
  webhookUrl: string | null;
  peerlessPurgeTimeout: number | null;
  peerDisconnectedTimeout: number | null;
}

export interface Track {
  id: string;
  type: 'audio' | 'video';
  metadata: unknown;
}

export interface Peer {
  id: string;
  type: 'webrtc';
  status: 'connected' | 'disconnected';
  tracks: Track[];
  /** What the client sent when it joined; null before. */
  metadata: unknown;
}

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
}

/** Options of each kind of component; absent ones take the server's defaults. */
export interface ComponentOptions {
  hls: {
    lowLatency?: boolean;
    /** Seconds; absent = the whole stream stays in the playlist. */
    targetWindowDuration?: number;
    persistent?: boolean;
    subscribeMode?: 'auto' | 'manual';
    s3?: S3Credentials;
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

export type ComponentType = keyof ComponentOptions;

export interface Component {
  id: string;
  type: ComponentType | 'rtsp';
  properties: Record<string, unknown>;
  tracks: Track[];
}

export interface Room {
  id: string;
  config: RoomConfig;
  components: Component[];
  peers: Peer[];
}

export interface Health {
  status: 'UP';
  /** Seconds. */
  uptime: number;
  version: string;
  gitCommit: string;
  distribution: { enabled: boolean; nodeStatus: 'UP' | 'DOWN'; nodesInCluster: number };
}

/** Who published a track. */
export type TrackOwner = { peerId: string } | { componentId: string };

/** What happens in rooms; of the whole cluster, once each, in order per room. */
export type Notification =
  | { type: 'roomCreated' | 'roomDeleted' | 'roomCrashed' | 'hlsUploaded' | 'hlsUploadCrashed'; roomId: string }
  | { type: 'peerAdded' | 'peerDeleted' | 'peerConnected' | 'peerDisconnected'; roomId: string; peerId: string }
  | { type: 'peerCrashed'; roomId: string; peerId: string; reason: string }
  | { type: 'peerMetadataUpdated'; roomId: string; peerId: string; metadata: unknown }
  | { type: 'componentCrashed' | 'hlsPlayable'; roomId: string; componentId: string }
  | { type: 'trackAdded' | 'trackRemoved' | 'trackMetadataUpdated'; roomId: string; owner: TrackOwner; track: Track };
