import { readFileSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { DEFAULT_COOKIE, loadCluster } from './cluster.js';
import { ConfigError } from './errors.js';
import { nameHints } from './hints.js';
import { isSecret, Reader, trimmed, type EffectiveValue, type Environment } from './reader.js';
import type {
  ConfigWarning,
  HttpSettings,
  RecordingSettings,
  S3Credentials,
  Settings,
  WebrtcSettings,
} from './settings.js';
import { loadTls } from './tls.js';
import { PUBLIC_API_TOKEN, VARIABLES, type Profile, type VariableKey } from './variables.js';
import { deploymentWarnings, hostOf, isLocal } from './warnings.js';

const TURN_ADDRESSES = ['JF_WEBRTC_TURN_IP', 'JF_WEBRTC_TURN_LISTEN_IP'] as const;

/** Properties of the machine that affect loading. */
export interface World {
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
export function loadConfig(env: Environment, world: World): LoadedConfig {
  const profile = profileOf(env);
  const reader = new Reader(env, profile);
  const warnings = nameHints(env);

  const http = loadHttp(reader, world);
  const settings: Settings = {
    profile,
    gitCommit: reader.get('gitCommit'),
    resourcesPath: resolve(world.cwd, reader.get('resourcesBasePath')),
    http,
    logging: { structured: reader.get('structuredLogging'), level: loadLevel(reader, warnings) },
    webrtc: reader.get('webrtcUsed') ? loadWebrtc(reader, http) : null,
    mediaWorkers: loadWorkers(reader, world),
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
    cluster: loadCluster({ reader, hostname: world.hostname, warnings }),
    drainTimeout: reader.get('drainTimeout'),
    inspection: reader.get('inspection'),
    dashboard: reader.get('dashboard'),
    runtimePath: reader.read('runtimePath') ?? null,
  };

  return { settings, warnings: [...warnings, ...deploymentWarnings(settings, reader)], values: reader.values() };
}

function loadHttp(reader: Reader, world: World): HttpSettings {
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
    secretKeyBase = world.randomBytes(48).toString('base64');
    reader.computed('secretKeyBase', secretKeyBase);
  }

  const readFile = world.readFile ?? ((path: string) => readFileSync(path));
  const inCwd = (path: string | undefined) => (path === undefined ? undefined : resolve(world.cwd, path));

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

function loadWebrtc(reader: Reader, http: HttpSettings): WebrtcSettings {
  const { first, second } = loadMediaAddresses(reader.get('turnIp'), reader.get('turnListenIp'));
  const { turnIp } = first;
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

  return {
    ...first,
    second,
    turnTlsHost: turnIp === 'auto' || isIP(turnIp) !== 0 ? hostOf(http.host) : turnIp,
    stunServer,
    turnTlsPort,
    turnPortRange: reader.get('turnPortRange'),
    turnTcpPort: reader.read('turnTcpPort') ?? null,
  };
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

function loadWorkers(reader: Reader, world: World): number {
  const workers = reader.read('mediaWorkers');
  if (workers !== undefined) return workers;

  const cores = Math.max(1, world.cores);
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

/** Returns the configured secrets for the log to mask, without public defaults. */
export function secretValues(loaded: Pick<LoadedConfig, 'values' | 'settings'>): string[] {
  const secretNames = new Set(
    (Object.keys(VARIABLES) as VariableKey[]).filter(isSecret).map((key) => VARIABLES[key].name as string),
  );
  const secrets = loaded.values.filter((value) => secretNames.has(value.name) && value.origin !== 'default');
  const found = secrets.flatMap((value) => (value.value === undefined ? [] : [value.value]));

  return [...new Set([...found, loaded.settings.http.secretKeyBase])].filter(
    (value) => !PUBLIC_DEFAULTS.includes(value),
  );
}
