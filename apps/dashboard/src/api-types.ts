// Answers about the cluster that the server SDK has no types for (docs/reference/http-api.md).

export interface ClusterNode {
  readonly name: string;
  readonly state: 'up' | 'draining';
  readonly version: string;
  readonly uptime: number;
  readonly rooms: number;
  readonly peers: number;
  readonly forwardedTracks: number;
  readonly cpu: number;
  readonly loopP99Ms: number;
  readonly drainDeadline: number | null;
}

export interface ClusterLink {
  readonly from: string;
  readonly to: string;
  readonly state: 'up' | 'connecting' | 'down' | 'cut';
  readonly since: number | null;
  readonly lastError: string | null;
}

export interface Cluster {
  readonly asked: string;
  readonly nodes: readonly ClusterNode[];
  readonly links: readonly ClusterLink[];
  readonly unreachable: readonly { readonly name: string; readonly reason: string }[];
  readonly verdict: 'whole' | 'partial' | 'split';
}

export interface Placement {
  readonly at: number;
  readonly asked: string;
  readonly chosen: string | null;
  readonly nodes: readonly {
    readonly node: string;
    readonly rooms: number | null;
    readonly forwardedTracks: number | null;
    readonly draining: boolean | null;
    readonly failure: string | null;
    readonly verdict: string;
  }[];
}

export interface LogLine {
  readonly at: number;
  readonly level: 'debug' | 'info' | 'warning' | 'error';
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Stream {
  readonly track: string;
  readonly kind: 'audio' | 'video' | null;
  readonly bps: number;
  readonly loss: number;
}

export interface PeerStats {
  readonly node: string;
  readonly transport: {
    readonly ice: string;
    readonly dtls: string;
    readonly protocol: 'udp' | 'tcp';
    readonly remote: string | null;
    readonly estimationBps: number | null;
    readonly usedBps: number;
  } | null;
  readonly inbound: readonly (Stream & {
    readonly codec: string;
    readonly variant: 'l' | 'm' | 'h';
    readonly active: boolean;
    readonly jitterMs: number;
  })[];
  readonly outbound: readonly (Stream & {
    readonly from: string | null;
    readonly variant: 'l' | 'm' | 'h' | null;
    readonly reason: string;
    readonly roundTripMs: number | null;
  })[];
}
