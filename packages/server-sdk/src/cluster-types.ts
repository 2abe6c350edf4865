/** The nodes of the cluster and the links between them, as the asked node sees them. */
export interface Cluster {
  /** The node that answered. */
  asked: string;
  nodes: ClusterNode[];
  links: ClusterLink[];
  /** Nodes that did not answer, with the reason. */
  unreachable: { name: string; reason: string }[];
  /**
   * `partial`: links are missing, but every node reaches every other through others. `split`: separate groups exist.
   */
  verdict: 'whole' | 'partial' | 'split';
  /** Pairs of nodes without a link. */
  missing: string[][];
}

/** A node and its load. */
export interface ClusterNode {
  name: string;
  state: 'up' | 'draining';
  version: string;
  /** Uptime in seconds. */
  uptime: number;
  rooms: number;
  peers: number;
  /** Tracks times their subscribers, the measure that placement uses. */
  forwardedTracks: number;
  /** Busy cores. */
  cpu: number;
  /** 99th percentile of the event loop's delay, in milliseconds. */
  loopP99Ms: number;
  /** Time when a draining node accepts rooms again by itself, in milliseconds since the epoch. */
  drainDeadline: number | null;
  /** Time until which a draining node moves its rooms away, in milliseconds since the epoch. */
  movesUntil: number | null;
  /** Some of the rooms that a drain could not move so far, and why. */
  staying: { room: string; reason: string }[];
}

/** A connection between two nodes, as seen by one of them. */
export interface ClusterLink {
  from: string;
  to: string;
  state: 'up' | 'connecting' | 'down' | 'cut';
  /** Milliseconds since the epoch. */
  since: number | null;
  lastError: string | null;
}

/** Why a room is on its node, or where the next one would go. */
export interface PlacementDecision {
  /** Null for a room that does not exist yet. */
  room: string | null;
  /** Milliseconds since the epoch. */
  at: number;
  /** The node that decided. */
  asked: string;
  /** Null if no node could accept the room. */
  chosen: string | null;
  policy: string;
  nodes: {
    node: string;
    rooms: number | null;
    forwardedTracks: number | null;
    draining: boolean | null;
    answeredInMs: number;
    /** Why the node is not a candidate. */
    failure: string | null;
    verdict: string;
  }[];
  /** Nodes that refused because they had become busier. */
  conflicts: string[];
}

/** Severity of a log line. */
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

/** Selects the lines that `logs` returns. */
export interface LogOptions {
  /** The asked node if omitted. */
  node?: string;
  /** Minimum level; `debug` if omitted. */
  level?: LogLevel;
  /** Only lines that contain this text. */
  match?: string;
  /** 1 to 1,000; 200 if omitted. */
  limit?: number;
}

/** A line of a node's log, without secrets. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  at: number;
  node: string;
  level: LogLevel;
  event: string;
  fields: Record<string, unknown>;
}

/** The node to drain, and for how long. */
export interface DrainOptions {
  /** The asked node if omitted. */
  node?: string;
  /** Seconds after which the node accepts rooms again by itself; if omitted, it does so only on request. */
  deadline?: number;
  /** Moves the rooms of the node to other nodes, and their calls go on there. Default false. */
  move?: boolean;
  /** Seconds in which rooms that cannot move at first are tried again. Default 30. */
  moveTimeout?: number;
}

/** A room that has moved. */
export interface RoomMove {
  room: string;
  /** Names of nodes. */
  from: string;
  to: string;
  /** Milliseconds since the order. */
  ms: number;
}

/** Whether a node accepts new rooms. */
export interface Draining {
  draining: boolean;
  /** Number of rooms still on the node. */
  rooms: number;
}

/** Encoding of a simulcast track: low, medium, high. */
export type Variant = 'l' | 'm' | 'h';

/** Rates of one packet stream. */
export interface StreamRates {
  bps: number;
  packetsPerS: number;
  /** Share of packets lost, 0 to 1. */
  loss: number;
  nackPerS: number;
  pliPerS: number;
}

/** What a peer sends and receives, measured for one second. */
export interface PeerStats {
  id: string;
  /** The node that owns the room. */
  node: string;
  status: 'connected' | 'disconnected';
  /**
   * What its latest client is: `jellyfish`, `bloom`, `whip`, `whep`, or `livekit` and its kind unless that is standard;
   * absent before its first join, and on older nodes.
   */
  client?: string;
  /** Duration of the measurement, in milliseconds. */
  sampledMs: number;
  /** Null without media. */
  transport: {
    ice: 'new' | 'connected' | 'silent';
    dtls: 'new' | 'connecting' | 'connected' | 'closed' | 'failed';
    /** State of the media; absent if an older node has the room. */
    media?: {
      state: 'idle' | 'connecting' | 'connected' | 'interrupted' | 'failed';
      path?: 'udp' | 'tcp' | 'relay-udp' | 'relay-tcp' | 'relay-tls';
      problem?: 'NO_CHECKS' | 'ONE_WAY' | 'DTLS_FAILED' | 'NO_MEDIA';
    };
    protocol: 'udp' | 'tcp';
    /** Address of the client. */
    remote: string | null;
    /** Estimate of what the client can receive. */
    estimationBps: number | null;
    /** Bit rate sent to the client. */
    usedBps: number;
    /** Media worker of the transport; absent if an older node has the room. */
    worker?: number;
    /** Why it is on that worker: `worker 2 was less busy (0.10) than worker 1 (0.80)`. */
    workerReason?: string;
  } | null;
  /** Streams from the peer, one per encoding. */
  inbound: ({
    track: string;
    kind: 'audio' | 'video';
    codec: string;
    variant: Variant;
    active: boolean;
    jitterMs: number;
  } & StreamRates)[];
  /** Streams to the peer, one per track. */
  outbound: ({
    track: string;
    /** Id of the publishing peer or component. */
    from: string | null;
    kind: 'audio' | 'video' | null;
    /** The encoding being sent. */
    variant: Variant | null;
    /** The wanted encoding. */
    target: Variant | null;
    codec: string | null;
    /** Highest layers being sent of a scalable stream, and those of its publisher: `S1T2 of S2T2`. */
    layers: string | null;
    /** Why this encoding and these layers are sent. */
    reason: string;
    roundTripMs: number | null;
  } & StreamRates)[];
}
