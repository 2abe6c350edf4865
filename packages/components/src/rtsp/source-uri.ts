/**
 * Address of a camera or encoder: what is accepted, what the native library receives, and what may be shown publicly.
 */

const SCHEMES = ['rtsp', 'rtsps', 'srt', 'rtmp', 'rtmps'] as const;
export type SourceScheme = (typeof SCHEMES)[number];

const DEFAULT_PORTS: Readonly<Partial<Record<SourceScheme, number>>> = {
  rtsp: 554,
  rtsps: 322,
  rtmp: 1_935,
  rtmps: 443,
};

const TRANSPORTS = ['tcp', 'udp'] as const;
const MAX_URI_CHARACTERS = 2_048;
/** Scheme, user information, host with port, path, query, fragment; RFC 3986 appendix B with the authority split up. */
const PARTS = /^([a-z]+):\/\/(?:([^/?#]*)@)?([^/?#@]+)(\/[^?#]*)?(?:\?([^#]*))?(#.*)?$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;
/** Printable ASCII except space: the native library splits RTMP addresses at spaces. */
const PRINTABLE = /^[!-~]+$/;

export interface SourceUri {
  scheme: SourceScheme;
  /** Address with credentials, for the native library. */
  secret: string;
  host: string;
  port: number;
  login: { username: string; password: string } | undefined;
  /** Address in requests to a camera: without the login and the parameter that selects the transport. */
  request: string;
  /** Address with `***` in place of credentials, as shown by the API, logs and inspection. */
  shown: string;
  /** RTP transport requested by the address's `transport` parameter. */
  transport: 'tcp' | 'udp' | undefined;
  /** Options of an SRT address; empty for other schemes. */
  srt: Readonly<Record<string, string>>;
}

/** Parses the address. Returns undefined when the scheme is unknown or the address is malformed or too long. */
export function parseSourceUri(given: string): SourceUri | undefined {
  if (given.length > MAX_URI_CHARACTERS || !PRINTABLE.test(given)) return undefined;
  const [, name = '', user, authority = '', path = '', query, fragment] = PARTS.exec(given) ?? [];
  const scheme = SCHEMES.find((known) => known === name.toLowerCase());
  const [, host, port] = HOST.exec(authority) ?? [];
  if (scheme === undefined || host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    return undefined;
  // SRT has no default port.
  if (scheme === 'srt' && port === undefined) return undefined;
  const srt = scheme === 'srt' ? srtOptions(query ?? '') : {};
  if (srt === undefined) return undefined;
  const parameters = query?.split('&') ?? [];
  const shownLogin = user === undefined ? '' : '***@';
  const asked = parameters.filter((parameter) => !TRANSPORTS.some((transport) => transport === parameter)).join('&');
  const rest = `${path.replaceAll(CREDENTIAL_IN_PATH, '$1=***')}${shownQuery(query)}${fragment === undefined ? '' : '#***'}`;

  return {
    scheme,
    secret: scheme === 'srt' ? `srt://${authority}` : `${scheme}${given.slice(name.length)}`,
    transport: TRANSPORTS.find((transport) => parameters.includes(transport)),
    host: host.replaceAll(/[[\]]/g, '').toLowerCase(),
    port: Number(port ?? DEFAULT_PORTS[scheme]),
    login: user === undefined ? undefined : loginOf(user),
    request: `${scheme}://${authority}${path}${asked === '' ? '' : `?${asked}`}`,
    shown: `${scheme}://${shownLogin}${authority}${rest}`,
    srt,
  };
}

function loginOf(user: string): SourceUri['login'] {
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/.exec(user) ?? [];

  return { username: decoded(username) ?? username, password: decoded(password) ?? password };
}

/** Some cameras expect the login in the path: `/user=admin&password=1234&channel=1`. */
const CREDENTIAL_IN_PATH = /((?:user|login|pass|pwd|pw|token|key|secret|auth)[a-z]*)=([^/&;]*)/gi;

/** Parameters whose values are not secret for any camera; all other values are hidden. */
const HARMLESS = new Set(
  'camera channel codec fps latency mode pbkeylen profile resolution stream streamtype subtype tcp transtype udp unicast videocodec'.split(
    ' ',
  ),
);

function shownQuery(query: string | undefined): string {
  if (query === undefined) return '';
  const shown = query.split('&').map((parameter) => {
    const [name = '', value] = halves(parameter);
    if (HARMLESS.has(name.toLowerCase())) return parameter;

    return value === undefined ? '***' : `${name}=***`;
  });

  return `?${shown.join('&')}`;
}

/** Maximum SRT latency in ms. */
const MAX_SRT_LATENCY = 8_000;

/** Parameters allowed in an SRT address. Others, such as the listener mode and buffer sizes, are rejected. */
const SRT_PARAMETERS: Readonly<Record<string, (value: string) => Record<string, string> | undefined>> = {
  mode: (value) => (value === 'caller' ? {} : undefined),
  transtype: (value) => (value === 'live' ? {} : undefined),
  // 10 to 79 characters, as the protocol requires.
  passphrase: (value) => (value.length >= 10 && value.length <= 79 ? { passphrase: value } : undefined),
  pbkeylen: (value) => (['16', '24', '32'].includes(value) ? { pbkeylen: value } : undefined),
  streamid: (value) => (value.length <= 512 ? { streamid: value } : undefined),
  // In microseconds for the native library.
  latency: (value) =>
    /^\d{1,4}$/.test(value) && Number(value) <= MAX_SRT_LATENCY
      ? { latency: String(Number(value) * 1_000) }
      : undefined,
};

function srtOptions(query: string): Record<string, string> | undefined {
  const options: Record<string, string> = {};
  for (const parameter of query.split('&')) {
    if (parameter === '') continue;
    const [name = '', encoded = ''] = halves(parameter);
    const value = decoded(encoded);
    const option =
      value === undefined ? undefined : Object.hasOwn(SRT_PARAMETERS, name) && SRT_PARAMETERS[name]!(value);
    if (option === undefined || option === false) return undefined;
    Object.assign(options, option);
  }

  return options;
}

function halves(parameter: string): [string, string?] {
  const at = parameter.indexOf('=');

  return at < 0 ? [parameter] : [parameter.slice(0, at), parameter.slice(at + 1)];
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
