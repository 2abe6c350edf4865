// The shapes of the HTTP API (docs/reference/http-api.md).

/** What a client reads of an answer: a `Response`, or a part of one. */
export interface FetchedAnswer extends Pick<Response, 'ok' | 'status' | 'statusText' | 'text'> {
  readonly headers: Pick<Headers, 'get'>;
}

/** Sends a call: the global `fetch`, or anything that answers as it does. */
export type Fetch = (url: URL, init: RequestInit) => Promise<FetchedAnswer>;

/** Options of a new room. */
export interface RoomOptions {
  /** Letters, digits and hyphens; generated if omitted. */
  roomId?: string;
  /** Maximum number of peers; unlimited if omitted. */
  maxPeers?: number;
  /** Any supported codec if omitted. */
  videoCodec?: 'h264' | 'vp8';
  /** http(s) URL that receives every notification of the room; see `parseWebhook`. */
  webhookUrl?: string;
  /** Seconds without a connected peer after which the room is removed; never if omitted. */
  peerlessPurgeTimeout?: number;
  /** Seconds after which a disconnected peer is removed; never if omitted. */
  peerDisconnectedTimeout?: number;
  /** Labels of data channels whose messages arrive as `dataMessage`; none if omitted. */
  dataEvents?: readonly string[];
}

/** All rooms at the start of a connection, from `notifications({ reconnect: true })`. */
export interface RoomSnapshot {
  type: 'snapshot';
  rooms: Room[];
  /** Nodes that did not answer. Their rooms are missing but may continue. */
  unreachable: string[];
}

/** Configuration of a room; null means not set. */
export interface RoomConfig {
  roomId: string;
  maxPeers: number | null;
  videoCodec: 'h264' | 'vp8' | null;
  webhookUrl: string | null;
  peerlessPurgeTimeout: number | null;
  peerDisconnectedTimeout: number | null;
  /** Omitted if there are none. */
  dataEvents?: readonly string[];
  /** Set by `updateRoom`; absent until then. */
  metadata?: unknown;
}

/** Changes to a room. Omitted fields stay unchanged; null removes a setting. */
export interface RoomChanges {
  maxPeers?: number | null;
  peerlessPurgeTimeout?: number | null;
  peerDisconnectedTimeout?: number | null;
  dataEvents?: readonly string[] | null;
  /** Any JSON value. */
  metadata?: unknown;
}

/** Track of a peer or component. */
export interface Track {
  id: string;
  type: 'audio' | 'video';
  metadata: unknown;
  /** Set by `muteTrack`; absent until then. */
  muted?: boolean;
}

/** Participant in a room. */
export interface Peer {
  id: string;
  type: 'webrtc';
  status: 'connected' | 'disconnected';
  tracks: Track[];
  /**
   * Metadata that the client sent when it joined; null before. Once the backend has set metadata, `{ peer, server }`
   * with both the client's and the backend's.
   */
  metadata: unknown;
  /** Absent unless the backend has set permissions. */
  permissions?: PeerPermissions;
}

/** What a peer's client may do. */
export interface PeerPermissions {
  /** True for every kind, false for none. */
  publish: boolean | ('audio' | 'video' | 'data')[];
  /** Allows receiving the tracks of others. */
  subscribe: boolean;
  /** Shows the client's own metadata to others. */
  metadata: boolean;
}

/** Options of a new peer. */
export interface PeerOptions {
  /** Default true. */
  enableSimulcast?: boolean;
  /** Any JSON value up to 64 KiB with which the backend describes the peer. */
  metadata?: unknown;
  /** All true by default. */
  permissions?: Partial<PeerPermissions>;
  /** Validity of the token in seconds; 24 hours by default. */
  ttl?: number;
}

/** A way to a node, as an ICE server of a browser. */
export interface CheckRelay {
  /** The UDP relay has the address and port of the direct path. */
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly url: string;
  readonly username: string;
  readonly credential: string;
}

/** The ways to a node, for testing them. */
export interface PathCheck {
  readonly relays: readonly CheckRelay[];
  /** Unix milliseconds: 30 s after the request. */
  readonly expiresAt: number;
}

/** Options of an invitation. */
export interface InvitationOptions {
  /** Validity in seconds; 24 hours by default, at most 30 days. */
  ttl?: number;
  /** Name of every guest; without it they choose their own. */
  name?: string;
  /** All true by default. */
  permissions?: Partial<PeerPermissions>;
  /** Number of guests; by default as many as the room takes. */
  uses?: number;
}

/** Changes to a peer. Omitted fields stay unchanged. */
export interface PeerChanges {
  /** Null removes the backend's metadata. */
  metadata?: unknown;
  permissions?: Partial<PeerPermissions>;
}

/** A message to clients. */
export interface RoomMessage {
  /** 1 to 256 characters. */
  topic: string;
  /** Any JSON value of up to 16 KiB. */
  data: unknown;
  /** Ids of the receiving peers; everyone in the room if omitted. */
  to?: readonly string[];
}

/** Bucket of an S3-compatible store, and the key for writing to it. */
export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
}

/** Options of each kind of component. Omitted options use the server's defaults. */
export interface ComponentOptions {
  hls: {
    lowLatency?: boolean;
    /** Seconds; the playlist keeps the whole stream if omitted. */
    targetWindowDuration?: number;
    persistent?: boolean;
    subscribeMode?: 'auto' | 'manual';
    s3?: S3Credentials;
    /** Takes VP8 and VP9 beside H.264, so that any room can be streamed; false by default. */
    anyCodec?: boolean;
  };
  rtsp: {
    /** Address with the scheme `rtsp`, `rtsps`, `srt`, `rtmp` or `rtmps`. */
    sourceUri: string;
    /** Local port for RTP over UDP; unused over TCP. */
    rtpPort?: number;
    /** Milliseconds. */
    reconnectDelay?: number;
    /** Milliseconds. */
    keepAliveInterval?: number;
    pierceNat?: boolean;
  };
  file: {
    /** Path relative to the server's `file_component_sources`; `.h264` or `.ogg`. */
    filePath: string;
    framerate?: number;
  };
  recording: {
    /** With `endpoint`, the base URL of a store, they replace those of the server. */
    credentials?: S3Credentials & { endpoint?: string };
    pathPrefix?: string;
    subscribeMode?: 'auto' | 'manual';
    /** Sends `recordingUploaded` or `recordingFailed`; false by default. */
    notify?: boolean;
    /** Records no pictures; false by default. */
    audioOnly?: boolean;
    /** Takes VP8 and VP9 beside H.264, so that any room can be recorded; false by default. */
    anyCodec?: boolean;
  };
  sip: {
    registrarCredentials: { address: string; username: string; password: string };
  };
}

/** Kind of a component. */
export type ComponentType = keyof ComponentOptions;

/** Public properties of each kind of component. */
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
    /** Present if it takes VP8 and VP9 beside H.264. */
    anyCodec?: true;
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
  recording: { subscribeMode: 'auto' | 'manual'; paused?: boolean; audioOnly?: true; anyCodec?: true };
  sip: { registrarCredentials: { address: string; username: string; password: string } };
}

/** A component of kind `T`. `Component` alone is any kind, distinguished by `type`. */
export type Component<T extends ComponentType = ComponentType> = {
  [K in T]: { id: string; type: K; properties: ComponentProperties[K]; tracks: Track[] };
}[T];

/** A room with everything in it. */
export interface Room {
  id: string;
  config: RoomConfig;
  components: Component[];
  peers: Peer[];
}

/** What a Recording component has recorded, a file per track. */
export interface RawRecording {
  room: string;
  /** Name within the room: `part_<UTC timestamp>`. */
  part: string;
  /** `finished`: complete, and not in a bucket yet. `uploaded`: the local files are gone. */
  state: 'recording' | 'finished' | 'uploading' | 'uploaded' | 'failed';
  /** Why it failed. */
  reason?: string;
  /** Share of the files that have been uploaded, 0 to 1. */
  progress?: number;
  tracks: number;
  /** Length up to the end of the last track. */
  seconds: number;
  bytes: number;
  /** Unix milliseconds. */
  startedAt: number;
  /** Unix milliseconds; null until the upload is complete. */
  uploadedAt: number | null;
  /** Present once a mix was requested. */
  mix?: RawRecordingMix;
}

/** How to mix a recording of tracks. */
export interface MixOptions {
  /** `speaker`: whoever speaks is large. Default `grid`. */
  layout?: 'grid' | 'speaker';
  /** Even numbers of pixels, up to 3,840 x 2,160. Default 1,280 x 720. */
  width?: number;
  height?: number;
  /** Make the movie without the parts that cannot be found, for example those of a node that is lost. */
  skipMissing?: boolean;
  /** Fetch the tracks if they were uploaded, and take the movie. Without `endpoint`, only if the server has none. */
  credentials?: {
    accessKeyId: string;
    secretAccessKey: string;
    region: string;
    bucket: string;
    endpoint?: string;
  };
}

/** One movie of a recording. */
export interface RawRecordingMix {
  /** `fetching`: the tracks come from their bucket. `finished`: on the node alone; `uploaded`: in the bucket. */
  state: 'queued' | 'fetching' | 'mixing' | 'uploading' | 'finished' | 'uploaded' | 'failed';
  /** Done of the present state, 0 to 1; while the node fetches or mixes. */
  progress?: number;
  /** Why it failed. */
  reason?: string;
  /** Names of the parts that the movie lacks, with `skipMissing`. */
  missing?: readonly string[];
  layout: 'grid' | 'speaker';
  width: number;
  height: number;
  /** Length of the movie, once there is one. */
  seconds?: number;
  bytes?: number;
  /** Name for `rawRecordingUrl`, while the node has the movie. */
  file?: string;
  /** Unix milliseconds. */
  requestedAt: number;
  /** Unix milliseconds; null before the end. */
  endedAt: number | null;
}

/** Which recordings of tracks to list. */
export interface RawRecordingQuery {
  room?: string;
  /** 1 to 1,000; default 100. */
  limit?: number;
  /** The last recording of the list before. */
  after?: Pick<RawRecording, 'room' | 'part'>;
}

/** Recordings of tracks on all nodes that answered. */
export interface RawRecordingSnapshot {
  /** Newest first. */
  recordings: RawRecording[];
  /** Nodes that did not answer. Recordings that only they have are missing. */
  unreachable: string[];
}

/** State of the asked node. */
export interface Health {
  status: 'UP';
  /** Uptime in seconds. */
  uptime: number;
  version: string;
  gitCommit: string;
  /** Present while the node accepts no new rooms, on request or because it is ending. */
  draining?: true;
  distribution: { enabled: boolean; nodeStatus: 'UP' | 'DOWN'; nodesInCluster: number };
}

/** The publisher of a track. */
export type TrackOwner = { peerId: string } | { componentId: string };

/** An event in a room anywhere in the cluster. Each arrives once, in order per room. */
export type Notification =
  | { type: 'roomCreated' | 'roomDeleted' | 'roomCrashed' | 'hlsUploaded' | 'hlsUploadCrashed'; roomId: string }
  | { type: 'peerAdded' | 'peerDeleted' | 'peerConnected' | 'peerDisconnected'; roomId: string; peerId: string }
  | { type: 'peerCrashed'; roomId: string; peerId: string; reason: string }
  | { type: 'peerMetadataUpdated'; roomId: string; peerId: string; metadata: unknown }
  | { type: 'componentCrashed' | 'hlsPlayable'; roomId: string; componentId: string }
  | { type: 'trackAdded' | 'trackRemoved' | 'trackMetadataUpdated'; roomId: string; owner: TrackOwner; track: Track }
  | RecordingUploaded
  | RecordingFailed
  | DataMessage;

/** A recording with `notify` is in its bucket. */
export interface RecordingUploaded {
  type: 'recordingUploaded';
  roomId: string;
  componentId: string;
  /** Object keys are the prefix, a slash and a file name. */
  prefix: string;
  files: string[];
}

/** A recording with `notify` will not be uploaded. */
export interface RecordingFailed extends Omit<RecordingUploaded, 'type'> {
  type: 'recordingFailed';
  reason: string;
}

/** A client's message on a data channel listed in its room's `dataEvents`. */
export interface DataMessage {
  type: 'dataMessage';
  roomId: string;
  /** The sender. */
  peerId: string;
  label: string;
  /** Ids of the recipients; empty if the message was for everyone. */
  to: string[];
  /** A string if sent as text, otherwise bytes. */
  data: string | Uint8Array;
}
