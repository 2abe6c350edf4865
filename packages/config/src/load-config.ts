import { readFileSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { loadAdvertisedPorts } from './advertised-ports.js';
import { DEFAULT_COOKIE, loadCluster } from './cluster.js';
import { ConfigError } from './errors.js';
import { nameHints } from './hints.js';
import { parseLivekitKeys } from './livekit.js';
import { Reader, trimmed, type EffectiveValue, type Environment } from './reader.js';
import type {
  ConfigWarning,
  HttpSettings,
  LivekitSettings,
  RecordingSettings,
  S3Credentials,
  Settings,
  WebrtcSettings,
} from './settings.js';
import { loadTls } from './tls.js';
import { PUBLIC_API_TOKEN, VARIABLES, type Profile } from './variables.js';
import { deploymentWarnings, hostOf, isAny, isLocal, portOf } from './warnings.js';

const HTTPS_PORT = 443;
const TURN_ADDRESSES = ['JF_WEBRTC_TURN_IP', 'JF_WEBRTC_TURN_LISTEN_IP'] as const;

/** Properties of the machine that affect loading. */
export interface Machine {
  /** Working directory, absolute. */
  cwd: string;
  hostname: string;
  /** Number of cores available to media workers. */
  cores: number;
  /** Returns `n` random bytes, for a signing key when none is configured. */
  randomBytes: (n: number) => Buffer;
  /** Default: reads from the file system. */
  readFile?: (path: string) => Buffer;
}

export interface LoadedConfig {
  settings: Settings;
  warnings: ConfigWarning[];
  /** Every variable with its effective value and origin, for `printConfig`. */
  values: EffectiveValue[];
}

function profileOf(env: Environment): Profile {
  const name = trimmed(env['NODE_ENV'] ?? '');

  return name === 'production' || name === 'test' ? name : 'development';
}

/** Returns true if the log is JSON, for the line that reports invalid settings. */
export function wantsStructuredLogging(env: Environment): boolean {
  try {
    return new Reader(env, profileOf(env)).get('structuredLogging');
  } catch {
    return false;
  }
}

/**
 * Loads the settings of `env` (docs/reference/configuration.md).
 *
 * @throws ConfigError for the first invalid value
 */
export function loadConfig(env: Environment, machine: Machine): LoadedConfig {
  const profile = profileOf(env);
  const reader = new Reader(env, profile);
  const warnings = nameHints(env);

  const http = loadHttp(reader, machine);
  const settings: Settings = {
    profile,
    gitCommit: reader.get('gitCommit'),
    resourcesPath: resolve(machine.cwd, reader.get('resourcesBasePath')),
    http,
    logging: { structured: reader.get('structuredLogging'), level: loadLevel(reader, warnings) },
    webrtc: reader.get('webrtcUsed') ? loadWebrtc(reader, http, profile) : null,
    mediaWorkers: loadWorkers(reader, machine),
    sip: reader.get('sipUsed') ? loadSip(reader) : null,
    recording: loadRecording(reader),
    metrics: {
      ip: reader.get('metricsIp'),
      port: reader.get('metricsPort'),
      webrtcIntervalMs: reader.get('webrtcMetricsInterval'),
      roomIntervalMs: reader.get('roomMetricsInterval'),
      compat: reader.get('metricsCompat'),
    },
    webhooks: { retries: reader.get('webhookRetries'), secret: reader.read('webhookSecret') ?? null },
    livekit: loadLivekit(reader),
    cluster: loadCluster({ reader, hostname: machine.hostname, warnings }),
    drainTimeout: reader.get('drainTimeout'),
    drainMode: reader.get('drainMode'),
    inspection: reader.get('inspection'),
    dashboard: reader.get('dashboard'),
    runtimePath: reader.read('runtimePath') ?? null,
  };

  return { settings, warnings: [...warnings, ...deploymentWarnings(settings, reader)], values: reader.values() };
}

function loadLivekit(reader: Reader): LivekitSettings | null {
  const given = reader.read('livekitKeys');
  if (given === undefined) return null;
  const keys = parseLivekitKeys(given);

  return {
    keys,
    autoCreate: reader.get('livekitAutoCreate'),
    emptyTimeout: reader.get('livekitEmptyTimeout'),
    departureTimeout: reader.get('livekitDepartureTimeout'),
    maxParticipants: reader.get('livekitMaxParticipants'),
    remoteUnmute: reader.get('livekitRemoteUnmute'),
    webhooks: { urls: reader.read('livekitWebhookUrls') ?? [], key: loadLivekitWebhookKey(reader, keys) },
  };
}

/** Returns the key that signs LiveKit's webhooks. */
function loadLivekitWebhookKey(reader: Reader, keys: LivekitSettings['keys']): string {
  const key = reader.read('livekitWebhookKey') ?? keys[0]!.key;
  if (keys.every((each) => each.key !== key)) {
    throw new ConfigError('JF_LIVEKIT_WEBHOOK_KEY', 'JF_LIVEKIT_WEBHOOK_KEY is not valid: JF_LIVEKIT_KEYS lacks it');
  }

  return key;
}

function loadHttp(reader: Reader, machine: Machine): HttpSettings {
  const ip = reader.get('ip');
  const port = reader.get('port');
  let host = reader.read('host');
  if (host === undefined) {
    host = `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`;
    reader.computed('host', host);
  }

  const apiToken = loadApiToken(reader, ip);
  let secretKeyBase = reader.read('secretKeyBase');
  if (secretKeyBase === undefined) {
    secretKeyBase = machine.randomBytes(48).toString('base64');
    reader.computed('secretKeyBase', secretKeyBase);
  }

  const readFile = machine.readFile ?? ((path: string) => readFileSync(path));
  const inCwd = (path: string | undefined) => (path === undefined ? undefined : resolve(machine.cwd, path));

  return {
    ip,
    port,
    host,
    apiToken,
    secretKeyBase,
    checkOrigin: reader.get('checkOrigin'),
    publicMediaFiles: reader.get('publicMediaFiles'),
    ...loadProxies(reader),
    tls: loadTls({
      keyPath: inCwd(reader.read('sslKeyPath')),
      certPath: inCwd(reader.read('sslCertPath')),
      readFile,
    }),
  };
}

/** @throws ConfigError when anyone who can reach the listener would know the token */
function loadApiToken(reader: Reader, ip: string): string {
  if (!reader.isSet('serverApiToken') && !reader.isProduction && !isLocal(ip)) {
    throw new ConfigError(
      'JF_SERVER_API_TOKEN',
      `JF_SERVER_API_TOKEN is not set and NODE_ENV is not production: the public token would be valid on JF_IP=${ip}, beyond this machine; set a token`,
    );
  }

  return reader.get('serverApiToken');
}

function loadProxies(reader: Reader): Pick<HttpSettings, 'trustedProxies' | 'proxyProtocol'> {
  const trustedProxies = reader.read('trustedProxies') ?? [];
  const proxyProtocol = reader.get('proxyProtocol');
  if (proxyProtocol && trustedProxies.length === 0) {
    throw new ConfigError(
      'JF_TRUSTED_PROXIES',
      'JF_TRUSTED_PROXIES is not set: with JF_PROXY_PROTOCOL=true connections are taken from these proxies only',
    );
  }

  return { trustedProxies, proxyProtocol };
}

function loadLevel(reader: Reader, warnings: ConfigWarning[]): Settings['logging']['level'] {
  const level = reader.get('logLevel');
  if (level === 'debug' || level === 'info' || level === 'warning' || level === 'error') return level;

  warnings.push({
    variable: 'JF_LOG_LEVEL',
    message: `JF_LOG_LEVEL=${JSON.stringify(level.slice(0, 200))} is none of debug, info, warning, error; info is used`,
  });
  reader.computed('logLevel', 'info');

  return 'info';
}

function loadWebrtc(reader: Reader, http: HttpSettings, profile: Profile): WebrtcSettings {
  const { first, second } = loadMediaAddresses(reader.get('turnIp'), reader.get('turnListenIp'));
  const { turnIp } = first;
  const isTried = profile === 'development' && !reader.isSet('turnIp') && !reader.isSet('turnListenIp');
  const stunServer = reader.read('stunServer') ?? null;
  if (turnIp === 'auto' && stunServer === null) {
    throw new ConfigError(
      'JF_STUN_SERVER',
      'JF_STUN_SERVER is not set: JF_WEBRTC_TURN_IP=auto asks it for the address',
    );
  }
  const turnTlsPort = reader.read('turnTlsPort') ?? null;
  if (turnTlsPort !== null && http.tls === null) {
    throw new ConfigError(
      'JF_SSL_KEY_PATH',
      `JF_SSL_KEY_PATH and JF_SSL_CERT_PATH are not set: JF_WEBRTC_TURN_TLS_PORT=${turnTlsPort} needs a certificate`,
    );
  }

  const turnPortRange = reader.get('turnPortRange');
  const listenIps = [first.turnListenIp, second?.turnListenIp ?? first.turnListenIp];
  const isShared = turnTlsPort === http.port && listenIps.some((ip) => overlap(ip, http.ip));

  return {
    ...first,
    second,
    more: isTried ? 'machine' : [],
    turnTlsHost: isShared || turnIp === 'auto' || isIP(turnIp) !== 0 ? hostOf(http.host) : turnIp,
    turnTlsOnHttp: isShared ? (portOf(http.host) ?? HTTPS_PORT) : null,
    stunServer,
    turnTlsPort,
    turnPortRange,
    advertisedPorts: loadAdvertisedPorts(reader, turnPortRange),
    turnTcpPort: reader.read('turnTcpPort') ?? null,
  };
}

/** Returns whether listeners on both addresses would claim the same port. */
function overlap(one: string, other: string): boolean {
  return one === other || isAny(one) || isAny(other);
}

interface MediaAddresses {
  first: { turnIp: string; turnListenIp: string };
  second: WebrtcSettings['second'];
}

/** Pairs advertised and listen addresses by IP family. @throws ConfigError when a family lacks one of the two */
function loadMediaAddresses(announced: readonly string[], listen: readonly string[]): MediaAddresses {
  const [turnIp = '', other] = announced;
  const [turnListenIp = '', otherListen] = listen;
  if (other === undefined && otherListen === undefined) return { first: { turnIp, turnListenIp }, second: null };
  if (other === undefined || otherListen === undefined) {
    const [announcing, listening] = TURN_ADDRESSES;
    const [one, both] = other === undefined ? [announcing, listening] : [listening, announcing];
    throw new ConfigError(
      one,
      `${one} has one address and ${both} has two: media on IPv4 and IPv6 needs an address of each family in both`,
    );
  }
  const same = isIP(turnIp) === isIP(turnListenIp);

  return {
    first: { turnIp, turnListenIp: same ? turnListenIp : otherListen },
    second: { turnIp: other, turnListenIp: same ? otherListen : turnListenIp },
  };
}

function loadWorkers(reader: Reader, machine: Machine): number {
  const workers = reader.read('mediaWorkers');
  if (workers !== undefined) return workers;

  const cores = Math.max(1, machine.cores);
  reader.computed('mediaWorkers', String(cores));

  return cores;
}

function loadSip(reader: Reader): { ip: string } {
  const ip = reader.read('sipIp');
  if (ip === undefined) {
    throw new ConfigError('JF_SIP_IP', 'JF_SIP_IP is not set: JF_SIP_USED=true needs the address of this node');
  }

  return { ip };
}

function loadRecording(reader: Reader): RecordingSettings {
  return {
    enabled: reader.get('recordingUsed'),
    s3: loadS3(reader),
    s3PathPrefix: reader.read('s3PathPrefix') ?? null,
    s3Endpoint: reader.read('s3Endpoint') ?? null,
  };
}

function loadS3(reader: Reader): S3Credentials | null {
  const bucket = reader.read('s3Bucket');
  const region = reader.read('s3Region');
  const accessKeyId = reader.read('s3AccessKeyId');
  const secretAccessKey = reader.read('s3SecretAccessKey');

  if (bucket !== undefined && region !== undefined && accessKeyId !== undefined && secretAccessKey !== undefined) {
    return { bucket, region, accessKeyId, secretAccessKey };
  }

  const keys = ['s3Bucket', 's3Region', 's3AccessKeyId', 's3SecretAccessKey'] as const;
  const missing = keys.filter((key) => !reader.isSet(key)).map((key) => VARIABLES[key].name);
  if (missing.length === keys.length) return null;

  throw new ConfigError(
    missing[0] ?? 'JF_S3_BUCKET',
    `the credentials of the object storage are given in part, missing: ${missing.join(', ')}`,
  );
}

/** Documented defaults. Masking them would only black out ordinary words such as "development". */
const PUBLIC_DEFAULTS: readonly string[] = [DEFAULT_COOKIE, PUBLIC_API_TOKEN];

/** Returns the configured secrets, to be masked wherever they would be shown, without public defaults. */
export function secretValues({ http, cluster, recording, webhooks, livekit }: Settings): string[] {
  const { s3 } = recording;
  const values = [
    http.apiToken,
    http.secretKeyBase,
    cluster?.cookie,
    s3?.accessKeyId,
    s3?.secretAccessKey,
    webhooks.secret,
    ...(livekit?.keys ?? []).map(({ secret }) => secret),
  ];

  return values.filter((value): value is string => typeof value === 'string' && !PUBLIC_DEFAULTS.includes(value));
}
