import type { OriginRule } from './check-origin.js';
import type { PortRange } from './grammar.js';
import type { LivekitKey } from './livekit.js';
import type { TlsSettings } from './tls.js';
import type { Profile } from './variables.js';

/** The effective settings of a node. Addresses are literal IP addresses; names of times include their unit. */
export interface Settings {
  profile: Profile;
  gitCommit: string;
  /** Absolute path. */
  resourcesPath: string;
  http: HttpSettings;
  logging: { structured: boolean; level: 'debug' | 'info' | 'warning' | 'error' };
  /** null if `JF_WEBRTC_USED=false`. */
  webrtc: WebrtcSettings | null;
  mediaWorkers: number;
  /** null if disabled. */
  sip: { ip: string } | null;
  recording: RecordingSettings;
  metrics: { ip: string; port: number; webrtcIntervalMs: number; roomIntervalMs: number; compat: boolean };
  webhooks: { retries: number; secret: string | null };
  /** null without `JF_LIVEKIT_KEYS`. */
  livekit: LivekitSettings | null;
  /** null if `JF_DIST_ENABLED=false`. */
  cluster: ClusterSettings | null;
  /** In seconds. */
  drainTimeout: number;
  drainMode: 'wait' | 'move';
  inspection: 'full' | 'read' | 'off';
  /** `guests`: the page for guests alone. */
  dashboard: boolean | 'guests';
  /** `XDG_RUNTIME_DIR`. */
  runtimePath: string | null;
}

export interface HttpSettings {
  ip: string;
  port: number;
  /** `host[:port][/path]` without scheme or trailing slash. */
  host: string;
  apiToken: string;
  secretKeyBase: string;
  checkOrigin: OriginRule;
  publicMediaFiles: boolean;
  /** Addresses and CIDR ranges. */
  trustedProxies: readonly string[];
  proxyProtocol: boolean;
  /** PEM; null for plain HTTP. */
  tls: TlsSettings | null;
}

export interface WebrtcSettings {
  /** Advertised to clients. A host name or `auto` is replaced by an address before the node starts. */
  turnIp: string;
  /** Name that clients check in the certificate of TURN over TLS; an address if there is no name. */
  turnTlsHost: string;
  turnListenIp: string;
  /** Addresses of the other IP family, if both variables have one. */
  second: { turnIp: string; turnListenIp: string } | null;
  /**
   * Further addresses to bind and announce. `machine` is replaced by those of this machine before the node starts, so
   * that browsers without access to loopback get media.
   */
  more: 'machine' | readonly string[];
  turnPortRange: PortRange;
  /** null if clients reach the workers' own ports. */
  advertisedPorts: AdvertisedPorts | null;
  turnTcpPort: number | null;
  turnTlsPort: number | null;
  /**
   * Port announced for TURN over TLS if its clients arrive at the HTTP listener: that of `JF_HOST`. null if TURN over
   * TLS is off or has its own listener.
   */
  turnTlsOnHttp: number | null;
  /** `JF_STUN_SERVER` */
  stunServer: { host: string; port: number } | null;
}

/** Plain data; `advertisedPort` of @bloom/webrtc looks a port up. */
export interface AdvertisedPorts {
  /** Distance from a worker's port to the advertised one, unless it is listed. */
  offset: number;
  /** Advertised ports by worker port. */
  listed: ReadonlyMap<number, number>;
}

export interface LivekitSettings {
  /** The first one signs. */
  keys: readonly LivekitKey[];
  autoCreate: boolean;
  /** In seconds. */
  emptyTimeout: number;
  /** In seconds. */
  departureTimeout: number;
  /** 0 = no limit. */
  maxParticipants: number;
  remoteUnmute: boolean;
  webhooks: {
    /** Empty: none are sent. */
    urls: readonly string[];
    /** The key that signs. */
    key: string;
  };
}

export interface S3Credentials {
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

export interface RecordingSettings {
  enabled: boolean;
  s3: S3Credentials | null;
  s3PathPrefix: string | null;
  s3Endpoint: string | null;
}

export interface ClusterSettings {
  mode: 'sname' | 'name';
  /** `<nodename>@<hostname>`. With `dns`, a host that is not an IP address still has to be resolved. */
  nodeName: string;
  discovery:
    | { strategy: 'NODES_LIST'; nodes: readonly string[] }
    | { strategy: 'DNS'; query: string; pollingIntervalMs: number };
  cookie: string;
  /** null for all IPv4 addresses. */
  ip: string | null;
  tickTimeS: number;
  /** `JF_STANDBY`. */
  standby: boolean;
  portMapperPort: number;
  /** null for any free port. */
  portRange: PortRange | null;
}

/** A problem that is logged but does not prevent the start. */
export interface ConfigWarning {
  variable: string;
  /** A sentence. */
  message: string;
}
