import type { Grammar } from './grammar.js';

/** Web pages that may open websockets (`JF_CHECK_ORIGIN`). */
export type OriginRule =
  /** Any page. */
  | { kind: 'any' }
  /** Pages on the host of `JF_HOST`. */
  | { kind: 'host' }
  /** Pages with the request's own scheme, host and port. */
  | { kind: 'connection' }
  /** Pages that match one of these patterns. */
  | { kind: 'list'; origins: readonly string[] };

export interface OriginRequest {
  /** The `Origin` header. Without it the client is not a browser, and the upgrade always passes. */
  origin: string | undefined;
  /** The `Host` header. */
  host: string | undefined;
  secure: boolean;
  /** `JF_HOST`. */
  publicHost: string;
}

/** Parses `true`, `false`, `:conn` or a list of origins. Any other text is a list, so parsing never fails. */
export const originRule: Grammar<OriginRule> = {
  name: '`true`, `false`, `:conn` or a list of origins',
  expected: 'an origin rule',
  emptyIsUnset: true,
  trims: true,
  parse: (text) => {
    const lower = text.toLowerCase();
    if (lower === 'true') return { kind: 'host' };
    if (lower === 'false') return { kind: 'any' };
    if (text === ':conn') return { kind: 'connection' };

    return { kind: 'list', origins: text.split(' ').filter((item) => item !== '') };
  },
};

interface Address {
  scheme: string | undefined;
  host: string;
  port: number | undefined;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };

/** Parses `scheme://host:port`, `//host:port`, `host:port` or a bare host, in lower case; undefined for other text. */
function parseAddress(text: string): Address | undefined {
  const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/)?(\[[0-9a-f:.]+\]|[^/:?#@\s[\]]+)(?::(\d{1,5}))?(?:\/.*)?$/.exec(
    text.toLowerCase(),
  );
  if (match?.[2] === undefined) return undefined;

  const schemeGiven = text.includes('://') ? match[1] : undefined;
  if (match[1] !== undefined && schemeGiven === undefined) {
    // `host:4000` parses as scheme and path: parse it again after `//`.
    return parseAddress(`//${text}`);
  }

  return { scheme: schemeGiven, host: match[2], port: match[3] === undefined ? undefined : Number(match[3]) };
}

function portOf(address: Address): number | undefined {
  return address.port ?? (address.scheme === undefined ? undefined : DEFAULT_PORTS[address.scheme]);
}

function fits(pattern: string, origin: Address): boolean {
  const wanted = parseAddress(pattern);
  if (wanted === undefined) return false;
  if (wanted.scheme !== undefined && wanted.scheme !== origin.scheme) return false;

  const wantedPort = portOf(wanted);
  if (wantedPort !== undefined && wantedPort !== portOf(origin)) return false;
  if (wanted.host.startsWith('*.')) return origin.host.endsWith(wanted.host.slice(1));

  return wanted.host === origin.host;
}

/** Returns true if a websocket upgrade with this `Origin` is accepted; others are refused with 403. */
export function originAllowed(rule: OriginRule, request: OriginRequest): boolean {
  if (rule.kind === 'any' || request.origin === undefined) return true;

  const origin = request.origin.includes('://') ? parseAddress(request.origin) : undefined;
  if (origin === undefined) return false;

  if (rule.kind === 'list') return rule.origins.some((pattern) => fits(pattern, origin));
  if (rule.kind === 'host') return parseAddress(`//${request.publicHost}`)?.host === origin.host;

  const here = request.host === undefined ? undefined : parseAddress(`//${request.host}`);
  if (here === undefined) return false;

  const scheme = request.secure ? 'https' : 'http';

  return (
    origin.scheme === scheme && origin.host === here.host && portOf(origin) === (here.port ?? DEFAULT_PORTS[scheme])
  );
}
