/** The values in header fields: URIs, name-addresses, Via, CSeq. RFC 3261 section 25. */
import { printable, SipError } from './errors.js';

export interface SipUri {
  scheme: 'sip' | 'sips';
  user: string | undefined;
  /** Without the brackets of an IPv6 address. */
  host: string;
  port: number | undefined;
  /** Names are lower case; a parameter without a value is ''. */
  params: ReadonlyMap<string, string>;
}

/** @throws SipError SIP_MALFORMED */
export function parseUri(text: string): SipUri {
  const match =
    /^(sips?):(?:([^@<>\s]*)@)?(\[[0-9a-fA-F:.]+\]|[^:;?@<>\s[\]]+)(?::(\d{1,5}))?(;[^?<>\s]*)?(\?[^<>\s]*)?$/i.exec(
      text,
    );
  const port = match?.[4] === undefined ? undefined : Number(match[4]);
  if (!match || (port !== undefined && (port < 1 || port > 65_535)))
    throw new SipError('SIP_MALFORMED', `${printable(text)} is not a SIP URI`);
  const host = match[3] as string;
  return {
    scheme: (match[1] as string).toLowerCase() as 'sip' | 'sips',
    // A password in a URI is deprecated and never used.
    user: match[2]?.split(':')[0],
    host: host.startsWith('[') ? host.slice(1, -1) : host,
    port,
    params: parseParams(match[5] ?? ''),
  };
}

export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** `"Ann" <sip:ann@h>;tag=1`, as in From, To, Contact and Route. */
export interface NameAddress {
  displayName: string | undefined;
  /** The URI as written, for `parseUri`. */
  uri: string;
  params: ReadonlyMap<string, string>;
}

/** @throws SipError SIP_MALFORMED */
export function parseNameAddress(text: string): NameAddress {
  const open = indexOutsideQuotes(text, '<');
  if (open !== -1) {
    const close = text.indexOf('>', open);
    const rest = text.slice(close + 1).trim();
    if (close === -1 || (rest !== '' && !rest.startsWith(';')))
      throw new SipError('SIP_MALFORMED', `${printable(text)} is not an address`);
    const name = text.slice(0, open).trim();
    const quoted = name.length >= 2 && name.startsWith('"') && name.endsWith('"');
    return {
      displayName: (quoted ? unescape(name.slice(1, -1)) : name) || undefined,
      uri: text.slice(open + 1, close).trim(),
      params: parseParams(rest),
    };
  }
  // Without brackets the parameters belong to the header field, not to the URI (section 20.10).
  const semicolon = text.indexOf(';');
  const uri = (semicolon === -1 ? text : text.slice(0, semicolon)).trim();
  if (uri === '' || /[\s">]/.test(uri)) throw new SipError('SIP_MALFORMED', `${printable(text)} is not an address`);
  return { displayName: undefined, uri, params: parseParams(semicolon === -1 ? '' : text.slice(semicolon)) };
}

export interface Via {
  /** `UDP`, `TCP`, ... in upper case. */
  transport: string;
  host: string;
  port: number | undefined;
  params: ReadonlyMap<string, string>;
}

/** @throws SipError SIP_MALFORMED */
export function parseVia(text: string): Via {
  // Collapse whitespace first, so that the pattern cannot backtrack over a run of it.
  const semicolon = text.indexOf(';');
  const front = (semicolon === -1 ? text : text.slice(0, semicolon)).trim().replaceAll(/\s+/g, ' ');
  const match = /^SIP ?\/ ?2\.0 ?\/ ?([A-Za-z0-9]+) (\[[0-9a-fA-F:.]+\]|[^\s:,[\]]+)(?: ?: ?(\d{1,5}))?$/i.exec(front);
  if (!match) throw new SipError('SIP_MALFORMED', `${printable(text)} is not a Via header`);
  const host = match[2] as string;
  return {
    transport: (match[1] as string).toUpperCase(),
    host: host.startsWith('[') ? host.slice(1, -1) : host,
    port: match[3] === undefined ? undefined : Number(match[3]),
    params: parseParams(semicolon === -1 ? '' : text.slice(semicolon)),
  };
}

/** @throws SipError SIP_MALFORMED */
export function parseCSeq(text: string): { sequence: number; method: string } {
  const match = /^(\d{1,10})\s+(\S+)$/.exec(text);
  const sequence = Number(match?.[1]);
  if (!match || sequence >= 2 ** 31) throw new SipError('SIP_MALFORMED', `${printable(text)} is not a CSeq`);
  return { sequence, method: match[2] as string };
}

/** Parses `;name=value;flag` with quoted values; names become lower case. Malformed parameters are skipped. */
function parseParams(text: string): Map<string, string> {
  const params = new Map<string, string>();
  for (const part of splitOutsideQuotes(text, ';')) {
    const equals = part.indexOf('=');
    const name = (equals === -1 ? part : part.slice(0, equals)).trim().toLowerCase();
    const value = equals === -1 ? '' : part.slice(equals + 1).trim();
    const quoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
    if (name !== '' && !/\s/.test(name)) params.set(name, quoted ? unescape(value.slice(1, -1)) : value);
  }
  return params;
}

function splitOutsideQuotes(text: string, char: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = indexOutsideQuotes(text, char); at !== -1; at = indexOutsideQuotes(text, char, start)) {
    parts.push(text.slice(start, at));
    start = at + 1;
  }
  parts.push(text.slice(start));
  return parts;
}

/** Returns the position of the first `char` outside quotes at or after `start`, or -1. */
function indexOutsideQuotes(text: string, char: string, start = 0): number {
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const here = text[at];
    if (quoted && here === '\\') at += 1;
    else if (here === '"') quoted = !quoted;
    else if (!quoted && here === char) return at;
  }
  return -1;
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/gs, '$1');
}

export function writeParams(params: Iterable<readonly [string, string]>): string {
  let text = '';
  for (const [name, value] of params) text += value === '' ? `;${name}` : `;${name}=${value}`;
  return text;
}
