import { originRule } from './check-origin.js';
import {
  bool,
  boolOr,
  hostAndPort,
  httpUrl,
  integer,
  ip,
  ipOfEachFamily,
  keyPrefix,
  listOf,
  MAX_DELAY_MS,
  mediaAddress,
  network,
  nodeName,
  nonEmptyText,
  oneOf,
  port,
  portMapping,
  portRange,
  publicHost,
  text,
  word,
} from './grammar.js';
import { LIVEKIT_VARIABLES } from './livekit.js';
import { variable, type Variable } from './variable.js';

export type { Profile, Section, Variable } from './variable.js';

/** The default API token, which is public knowledge. */
export const PUBLIC_API_TOKEN = 'development';

const milliseconds = integer(1, MAX_DELAY_MS, ' milliseconds');

/**
 * Every variable that the node reads. The loader reads through this table, hints for misspelt names come from it, and
 * the reference page docs/reference/configuration.md is generated from it.
 */
export const VARIABLES = {
  ip: variable({
    name: 'JF_IP',
    section: 'HTTP, identity, security',
    grammar: ip,
    fallback: '127.0.0.1',
    doc: 'Address that the HTTP and websocket listener binds to.',
  }),
  port: variable({
    name: 'JF_PORT',
    section: 'HTTP, identity, security',
    grammar: port,
    fallback: { production: '8080', development: '5002', test: '4002' },
    doc: 'Port of the HTTP and websocket listener.',
  }),
  host: variable({
    name: 'JF_HOST',
    section: 'HTTP, identity, security',
    grammar: publicHost,
    fallback: null,
    fallbackDoc: '`<JF_IP>:<JF_PORT>`',
    doc: 'Address under which clients reach this node, `host[:port][/path]` without scheme. It is given out as the location of a room and in front of `/socket/peer/websocket`, and is what `JF_CHECK_ORIGIN=true` compares with.',
  }),
  serverApiToken: variable({
    name: 'JF_SERVER_API_TOKEN',
    section: 'HTTP, identity, security',
    grammar: nonEmptyText,
    fallback: { production: null, development: PUBLIC_API_TOKEN, test: PUBLIC_API_TOKEN },
    fallbackDoc: 'production, and with `JF_IP` beyond loopback: none, must be set; else `development`',
    secret: true,
    doc: 'Token of the HTTP API (`Authorization: Bearer <token>`) and of the server websocket. While it is `development`, which every web page knows, the API refuses it from pages that are neither on this machine nor on `JF_HOST` nor listed in `JF_CHECK_ORIGIN`.',
  }),
  secretKeyBase: variable({
    name: 'JF_SECRET_KEY_BASE',
    section: 'HTTP, identity, security',
    grammar: text,
    fallback: null,
    fallbackDoc: '48 random bytes, new at each start',
    secret: true,
    doc: 'Key that signs the tokens of peers. Unset: tokens die with the process and are not valid on other nodes, so give all nodes of a cluster the same value.',
  }),
  checkOrigin: variable({
    name: 'JF_CHECK_ORIGIN',
    section: 'HTTP, identity, security',
    grammar: originRule,
    fallback: { production: 'true', development: 'false', test: 'false' },
    doc: 'Which web pages may open websockets: `true` those of the host in `JF_HOST`, `false` all, `:conn` those of the scheme, host and port that the request came to, or a list such as `//example.com //*.example.com https://example.com:8443`. Others are refused with 403; clients that send no `Origin` always pass.',
  }),
  sslKeyPath: variable({
    name: 'JF_SSL_KEY_PATH',
    section: 'HTTP, identity, security',
    grammar: text,
    fallback: null,
    doc: 'File with the private key (PEM). Set together with `JF_SSL_CERT_PATH`: the listener then speaks HTTPS and WSS only.',
  }),
  sslCertPath: variable({
    name: 'JF_SSL_CERT_PATH',
    section: 'HTTP, identity, security',
    grammar: text,
    fallback: null,
    doc: 'File with the certificate and its chain (PEM).',
  }),
  gitCommit: variable({
    name: 'JF_GIT_COMMIT',
    section: 'HTTP, identity, security',
    grammar: word,
    fallback: 'dev',
    doc: 'Shown in the log, by `--version` and as `gitCommit` in the health report. `npm start` sets the commit of the checkout, with `-dirty` if files have changed since; image builds set theirs.',
  }),
  trustedProxies: variable({
    name: 'JF_TRUSTED_PROXIES',
    section: 'HTTP, identity, security',
    grammar: listOf(network),
    fallback: null,
    fallbackDoc: 'none',
    doc: 'Proxies in front of this node, addresses and CIDR ranges such as `10.0.0.0/8 fd00::/8`. The address of a client behind them is the last one in `X-Forwarded-For` that is not a proxy, and limits per address count that one. The header is ignored if it comes from any other address.',
  }),
  proxyProtocol: variable({
    name: 'JF_PROXY_PROTOCOL',
    section: 'HTTP, identity, security',
    grammar: bool,
    fallback: 'false',
    doc: '`true`: every connection to the HTTP port and to the TURN ports for TCP and TLS has to come from one of `JF_TRUSTED_PROXIES` and to begin with a PROXY protocol header (version 1 or 2), which gives the address of the client; others are closed. For load balancers that pass TCP on.',
  }),
  publicMediaFiles: variable({
    name: 'JF_PUBLIC_MEDIA_FILES',
    section: 'HTTP, identity, security',
    grammar: bool,
    fallback: 'false',
    doc: '`true` opens the files under `GET /hls/...` and `GET /recording/<id>/<file>` without token.',
  }),

  resourcesBasePath: variable({
    name: 'JF_RESOURCES_BASE_PATH',
    section: 'Storage and logging',
    grammar: text,
    fallback: 'bloom_resources',
    doc: 'Root of all files (sources of File components, HLS output, recordings); relative to the working directory.',
  }),
  structuredLogging: variable({
    name: 'JF_STRUCTURED_LOGGING',
    section: 'Storage and logging',
    grammar: bool,
    fallback: 'false',
    doc: '`true`: each log line is one JSON object with `time`, `severity`, `message`, `metadata`. `false`: text lines `time metadata[level] message`.',
  }),
  logLevel: variable({
    name: 'JF_LOG_LEVEL',
    section: 'Storage and logging',
    grammar: word,
    fallback: 'info',
    doc: '`debug`, `info`, `warning` or `error`; anything else is `info` and a warning.',
  }),

  webrtcUsed: variable({
    name: 'JF_WEBRTC_USED',
    section: 'Media',
    grammar: bool,
    fallback: 'true',
    doc: '`false`: no WebRTC peers, and the TURN variables are not read.',
  }),
  turnIp: variable({
    name: 'JF_WEBRTC_TURN_IP',
    section: 'Media',
    grammar: mediaAddress,
    fallback: '127.0.0.1',
    doc: 'Media address, as given to clients; one of each family, separated by a space, for media on IPv4 and IPv6. A host name is resolved at the start. `auto`: the address that `JF_STUN_SERVER` sees. In the development profile without this and `JF_WEBRTC_TURN_LISTEN_IP`, also the address of each family on the route to the default gateway, because Firefox and some other clients do not use loopback.',
  }),
  stunServer: variable({
    name: 'JF_STUN_SERVER',
    section: 'Media',
    grammar: hostAndPort(3478),
    fallback: null,
    doc: 'STUN server queried for the public address of this node with `JF_WEBRTC_TURN_IP=auto`, and for nothing else.',
  }),
  turnListenIp: variable({
    name: 'JF_WEBRTC_TURN_LISTEN_IP',
    section: 'Media',
    grammar: ipOfEachFamily,
    fallback: '127.0.0.1',
    doc: 'Address that the media sockets bind to; one of each family (`0.0.0.0 ::`) where `JF_WEBRTC_TURN_IP` has one of each.',
  }),
  turnPortRange: variable({
    name: 'JF_WEBRTC_TURN_PORT_RANGE',
    section: 'Media',
    grammar: portRange,
    fallback: '50000-59999',
    doc: 'UDP ports of the media workers; each worker binds the first free one or more of them, so several nodes of a machine share a range.',
  }),
  advertisedPorts: variable({
    name: 'JF_WEBRTC_ADVERTISED_PORTS',
    section: 'Media',
    grammar: portMapping,
    fallback: null,
    fallbackDoc: 'the ports of the workers',
    doc: 'UDP ports that clients reach, where a port mapping such as a NodePort of Kubernetes is in front of the media workers: `50000=31000 50001=31001`, or `+10000` for all. A worker port without an entry is advertised as it is.',
  }),
  turnTcpPort: variable({
    name: 'JF_WEBRTC_TURN_TCP_PORT',
    section: 'Media',
    grammar: port,
    fallback: null,
    doc: 'TCP port for media of clients that cannot use UDP; unset: off.',
  }),
  turnTlsPort: variable({
    name: 'JF_WEBRTC_TURN_TLS_PORT',
    section: 'Media',
    grammar: port,
    fallback: null,
    doc: 'TLS port for media of clients behind a firewall that passes nothing else, best 443; unset: off. Uses `JF_SSL_KEY_PATH` and `JF_SSL_CERT_PATH`. Equal to `JF_PORT`: HTTPS and media share the port, and clients are sent to host and port (443 unless given) of `JF_HOST`. Otherwise clients check the certificate against `JF_WEBRTC_TURN_IP` if that is a host name, else against the host of `JF_HOST`.',
  }),
  mediaWorkers: variable({
    name: 'JF_MEDIA_WORKERS',
    section: 'Media',
    grammar: integer(1, 1_024),
    fallback: null,
    fallbackDoc: 'number of cores',
    doc: 'Media workers.',
  }),
  sipUsed: variable({
    name: 'JF_SIP_USED',
    section: 'Media',
    grammar: bool,
    fallback: 'false',
    doc: 'Enables SIP components.',
  }),
  sipIp: variable({
    name: 'JF_SIP_IP',
    section: 'Media',
    grammar: ip,
    fallback: null,
    doc: 'Address of this node in calls; required with `JF_SIP_USED=true`, else not read.',
  }),
  recordingUsed: variable({
    name: 'JF_RECORDING_USED',
    section: 'Media',
    grammar: bool,
    fallback: 'true',
    doc: '`false` disables Recording components.',
  }),

  s3Bucket: variable({
    name: 'JF_S3_BUCKET',
    section: 'Object storage',
    grammar: text,
    fallback: null,
    doc: 'Bucket that Recording components upload to. Bucket, region, key id and secret key are set together or not at all.',
  }),
  s3Region: variable({
    name: 'JF_S3_REGION',
    section: 'Object storage',
    grammar: text,
    fallback: null,
    doc: 'Region of the bucket.',
  }),
  s3AccessKeyId: variable({
    name: 'JF_S3_ACCESS_KEY_ID',
    section: 'Object storage',
    grammar: text,
    fallback: null,
    secret: true,
    doc: 'Access key id.',
  }),
  s3SecretAccessKey: variable({
    name: 'JF_S3_SECRET_ACCESS_KEY',
    section: 'Object storage',
    grammar: text,
    fallback: null,
    secret: true,
    doc: 'Secret access key.',
  }),
  s3PathPrefix: variable({
    name: 'JF_S3_PATH_PREFIX',
    section: 'Object storage',
    grammar: keyPrefix,
    fallback: null,
    doc: 'Prefix of the object keys of Recording uploads; may be set without the other variables.',
  }),
  s3Endpoint: variable({
    name: 'JF_S3_ENDPOINT',
    section: 'Object storage',
    grammar: httpUrl,
    fallback: null,
    fallbackDoc: 'AWS',
    doc: 'Base URL of a compatible store, path style; used for every upload of the node, those with credentials from the API included.',
  }),

  metricsIp: variable({
    name: 'JF_METRICS_IP',
    section: 'Metrics and webhooks',
    grammar: ip,
    fallback: '127.0.0.1',
    doc: 'Address that the metrics listener binds to.',
  }),
  metricsPort: variable({
    name: 'JF_METRICS_PORT',
    section: 'Metrics and webhooks',
    grammar: port,
    fallback: '9568',
    doc: 'Port of `GET /metrics`, without authorization; must differ between nodes of a machine.',
  }),
  webrtcMetricsInterval: variable({
    name: 'JF_WEBRTC_METRICS_INTERVAL_MS',
    section: 'Metrics and webhooks',
    grammar: milliseconds,
    fallback: '1000',
    doc: 'Period of the metrics reports on the server websocket.',
  }),
  roomMetricsInterval: variable({
    name: 'JF_ROOM_METRICS_INTERVAL_MS',
    section: 'Metrics and webhooks',
    grammar: milliseconds,
    fallback: '10000',
    doc: 'Period in which the time counters of rooms advance.',
  }),
  metricsCompat: variable({
    name: 'JF_METRICS_COMPAT',
    section: 'Metrics and webhooks',
    grammar: bool,
    fallback: 'false',
    doc: 'Serves the series of the Jellyfish media server under their old names too, `jellyfish_*`, and, for one release, the counters of Bloom 0.1 that now end in `_total`.',
  }),
  webhookRetries: variable({
    name: 'JF_WEBHOOK_RETRIES',
    section: 'Metrics and webhooks',
    grammar: integer(0, 1_000),
    fallback: '0',
    doc: 'Further attempts per webhook, with back-off, before the event is dropped; the order within a room is kept.',
  }),
  webhookSecret: variable({
    name: 'JF_WEBHOOK_SECRET',
    section: 'Metrics and webhooks',
    grammar: text,
    fallback: null,
    secret: true,
    doc: 'Signs each webhook: adds `x-bloom-signature: sha256=<hex HMAC-SHA256 of the body>`, and `x-bloom-timed-signature`, by which a receiver refuses replays.',
  }),

  distEnabled: variable({
    name: 'JF_DIST_ENABLED',
    section: 'Cluster',
    grammar: word,
    fallback: 'false',
    doc: '`true`, in any letter case, makes the node a member of a cluster. Anything else is off, with a warning unless it is `false` or empty; of the variables below only `JF_DIST_MODE` is checked then.',
  }),
  distMode: variable({
    name: 'JF_DIST_MODE',
    section: 'Cluster',
    grammar: oneOf('sname', 'name'),
    fallback: 'sname',
    doc: 'Short host names (`sname`) or full names and IP addresses (`name`).',
  }),
  distStrategyName: variable({
    name: 'JF_DIST_STRATEGY_NAME',
    section: 'Cluster',
    grammar: oneOf('NODES_LIST', 'DNS'),
    fallback: 'NODES_LIST',
    doc: 'How other members are found. `DNS` needs `JF_DIST_MODE=name`.',
  }),
  distNodeName: variable({
    name: 'JF_DIST_NODE_NAME',
    section: 'Cluster',
    grammar: nodeName,
    fallback: null,
    fallbackDoc: '`bloom@<hostname>`, with `sname` up to its first dot',
    doc: 'Name of this node, `<nodename>@<hostname>`. With `DNS` the host name is resolved at start and all nodes share the part before the `@`.',
  }),
  distNodes: variable({
    name: 'JF_DIST_NODES',
    section: 'Cluster',
    grammar: listOf(nodeName),
    fallback: null,
    fallbackDoc: 'empty',
    doc: 'Nodes to connect to (`NODES_LIST` only); the name of this node is ignored.',
  }),
  distQuery: variable({
    name: 'JF_DIST_QUERY',
    section: 'Cluster',
    grammar: text,
    fallback: null,
    doc: 'DNS name under which the nodes are registered; required with `DNS`.',
  }),
  distPollingInterval: variable({
    name: 'JF_DIST_POLLING_INTERVAL',
    section: 'Cluster',
    grammar: milliseconds,
    fallback: '5000',
    doc: 'Milliseconds between two DNS queries (`DNS` only).',
  }),
  distCookie: variable({
    name: 'JF_DIST_COOKIE',
    section: 'Cluster',
    grammar: text,
    fallback: 'bloom_cookie',
    secret: true,
    doc: 'Secret that all members share. A cluster on the default cookie is open to its whole network.',
  }),
  distIp: variable({
    name: 'JF_DIST_IP',
    section: 'Cluster',
    grammar: ip,
    fallback: null,
    fallbackDoc: 'all IPv4 addresses',
    doc: 'Address that the listener between nodes and the port mapper started by this node bind to (the mapper listens on loopback too).',
  }),
  distTickTime: variable({
    name: 'JF_DIST_TICK_TIME',
    section: 'Cluster',
    grammar: integer(4, 600, ' (seconds)'),
    fallback: '60',
    doc: 'Seconds of silence after which a link is dropped; equal on all nodes.',
  }),
  epmdPort: variable({
    name: 'ERL_EPMD_PORT',
    section: 'Cluster',
    grammar: port,
    fallback: '4369',
    doc: 'Port of the port mapper.',
  }),
  distMinPort: variable({
    name: 'JF_DIST_MIN_PORT',
    section: 'Cluster',
    grammar: port,
    fallback: null,
    fallbackDoc: 'any free port',
    doc: 'First port for the listener between nodes; if only this is set, the range is that one port.',
  }),
  distMaxPort: variable({
    name: 'JF_DIST_MAX_PORT',
    section: 'Cluster',
    grammar: port,
    fallback: null,
    fallbackDoc: 'any free port',
    doc: 'Last port for the listener between nodes.',
  }),

  standby: variable({
    name: 'JF_STANDBY',
    section: 'Cluster',
    grammar: bool,
    fallback: 'false',
    doc: 'Gives each room a standby, another node that continues the room if its node is lost (guide/cluster.md#standbys). Must be equal on all nodes. Off by default, because a backend may rely on losing its rooms with their node.',
  }),

  ...LIVEKIT_VARIABLES,

  drainTimeout: variable({
    name: 'JF_DRAIN_TIMEOUT',
    section: 'Operation',
    grammar: integer(0, 2_147_483, ' (seconds)'),
    fallback: '0',
    doc: 'Seconds that SIGTERM leaves existing rooms running; 0 closes them immediately.',
  }),
  drainMode: variable({
    name: 'JF_DRAIN_MODE',
    section: 'Operation',
    grammar: oneOf('wait', 'move'),
    fallback: 'wait',
    doc: 'What SIGTERM does with existing rooms. `wait`: leaves them running for `JF_DRAIN_TIMEOUT`. `move`: moves them to other nodes of the cluster meanwhile (guide/upgrading.md#moving-rooms-away), for up to 8 s if `JF_DRAIN_TIMEOUT` is 0, or 6 s with `JF_LIVEKIT_KEYS`. Rooms that are left then end.',
  }),
  inspection: variable({
    name: 'JF_INSPECTION',
    section: 'Operation',
    grammar: oneOf('full', 'read', 'off'),
    fallback: { production: 'read', development: 'full', test: 'full' },
    doc: 'What `bloomctl` and Erlang shells may ask of this node. `full`: everything, faults on purpose (`kill`, `suspend`, `link cut`, `move-fault`) and log levels included; a holder of the cookie could do as much to any Erlang cluster. `read`: reading and `drain` only. `off`: no inspection.',
  }),
  dashboard: variable({
    name: 'JF_DASHBOARD',
    section: 'Operation',
    grammar: boolOr('guests'),
    fallback: { production: 'false', development: 'true', test: 'false' },
    doc: 'Serves the dashboard at `/` (guide/dashboard.md), the description of the API at `/docs`, and at `/book` the book that `npm run book` writes. People who open these pages sign in with `JF_SERVER_API_TOKEN`. Guests with an invitation get their page there too (guide/people.md#guests). `guests`: serves only the page for guests, which asks for no token. Both have the check of devices and network at `/#/check`.',
  }),
  runtimePath: variable({
    name: 'XDG_RUNTIME_DIR',
    section: 'Operation',
    grammar: text,
    fallback: null,
    fallbackDoc: 'the folder `run` below the resources',
    doc: 'Folder of the user, as systemd sets it. In `bloom/` below it each node opens the Unix socket on which it answers `bloomctl` (reference/bloomctl.md).',
  }),
} as const;

export type Variables = typeof VARIABLES;
export type VariableKey = keyof Variables;
/** Type of a parsed variable. */
export type ValueOf<K extends VariableKey> = Variables[K] extends Variable<infer T> ? T : never;

/** Obsolete names, which cause no hint. */
export const SILENT_NAMES: readonly string[] = ['JF_OUTPUT_BASE_PATH'];

/** Names used by other releases but not read here, with their replacements. */
export const REPLACED_NAMES: ReadonlyMap<string, string> = new Map([
  [
    'JF_COMPONENTS_USED',
    'JF_SIP_USED=true enables SIP components, JF_RECORDING_USED=false disables Recording components, HLS and File are always enabled',
  ],
]);
