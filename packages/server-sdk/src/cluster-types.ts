/** The nodes of the cluster and what connects them, as the asked node sees them. */
export interface Cluster {
  /** The node that answered. */
  asked: string;
  nodes: ClusterNode[];
  links: ClusterLink[];
  /** Nodes that did not answer, and why. */
  unreachable: { name: string; reason: string }[];
  /** `partial`: some links are missing, yet every node reaches every other through others. `split`: there are separate groups. */
  verdict: 'whole' | 'partial' | 'split';
  /** Pairs of nodes without a link. */
  missing: string[][];
}

/** A node and its load. */
export interface ClusterNode {
  name: string;
  state: 'up' | 'draining';
  version: string;
  /** Seconds. */
  uptime: number;
  rooms: number;
  peers: number;
  /** Tracks times their subscribers, which placement goes by. */
  forwardedTracks: number;
  /** Busy cores. */
  cpu: number;
  /** 99th percentile of the delay of the event loop. */
  loopP99Ms: number;
  /** Milliseconds since the epoch; when a draining node takes rooms again by itself. */
  drainDeadline: number | null;
}

/** A connection between two nodes, as one of them sees it. */
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
  /** Null when no node could take the room. */
  chosen: string | null;
  policy: string;
  nodes: {
    node: string;
    rooms: number | null;
    forwardedTracks: number | null;
    draining: boolean | null;
    answeredInMs: number;
    /** Why the node is no candidate. */
    failure: string | null;
    verdict: string;
  }[];
  /** Nodes that refused because they had become busier. */
  conflicts: string[];
}

/** Severity of a log line. */
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

/** Which lines `logs` returns. */
export interface LogOptions {
  /** The asked node when absent. */
  node?: string;
  /** Least severity; `debug` when absent. */
  level?: LogLevel;
  /** Only lines with this text. */
  match?: string;
  /** 1 to 1,000; 200 when absent. */
  limit?: number;
}

/** A line of the log of a node, without secrets. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  at: number;
  node: string;
  level: LogLevel;
  event: string;
  fields: Record<string, unknown>;
}

/** Which node is drained, and for how long. */
export interface DrainOptions {
  /** The asked node when absent. */
  node?: string;
  /** Seconds after which the node takes rooms again by itself; when asked to, if absent. */
  deadline?: number;
}

/** Whether a node takes new rooms. */
export interface Draining {
  draining: boolean;
  /** Rooms that the node still has. */
  rooms: number;
}

/** Encoding of a simulcast track: low, medium, high. */
export type Variant = 'l' | 'm' | 'h';

/** Rates of one stream of packets. */
export interface StreamRates {
  bps: number;
  packetsPerS: number;
  /** Share of packets lost, 0 to 1. */
  loss: number;
  nackPerS: number;
  pliPerS: number;
}

/** What a peer sends and receives, measured for a second. */
export interface PeerStats {
  id: string;
  /** The node with the room. */
  node: string;
  status: 'connected' | 'disconnected';
  /** Time over which the rates were taken. */
  sampledMs: number;
  /** Null without media. */
  transport: {
    ice: 'new' | 'connected' | 'silent';
    dtls: 'new' | 'connecting' | 'connected' | 'closed' | 'failed';
    protocol: 'udp' | 'tcp';
    /** Address of the client. */
    remote: string | null;
    /** What the client can receive. */
    estimationBps: number | null;
    /** What is sent to it. */
    usedBps: number;
  } | null;
  /** What the peer sends, one for each encoding. */
  inbound: ({
    track: string;
    kind: 'audio' | 'video';
    codec: string;
    variant: Variant;
    active: boolean;
    jitterMs: number;
  } & StreamRates)[];
  /** What is sent to the peer, one for each track. */
  outbound: ({
    track: string;
    /** Id of the publishing peer or component. */
    from: string | null;
    kind: 'audio' | 'video' | null;
    /** The encoding that is sent. */
    variant: Variant | null;
    /** The encoding that is wanted. */
    target: Variant | null;
    /** Why the two differ. */
    reason: string;
    roundTripMs: number | null;
  } & StreamRates)[];
}
