/** SIP messages as bytes and as values, RFC 3261 section 7. */
import { printable, SipError } from './errors.js';
import { SipHeaders } from './headers.js';

export interface SipRequest {
  kind: 'request';
  /** Upper case as on the wire; methods are case-sensitive. */
  method: string;
  uri: string;
  headers: SipHeaders;
  body: Buffer;
}

export interface SipResponse {
  kind: 'response';
  /** 100..699 */
  status: number;
  reason: string;
  headers: SipHeaders;
  body: Buffer;
}

export type SipMessage = SipRequest | SipResponse;

/** Maximum message size: the largest datagram. */
export const MAX_MESSAGE_BYTES = 65_535;
const MAX_HEADER_BYTES = 32_768;
const MAX_LINE_LENGTH = 8192;
/** Start line and header fields, counting those that share a line. */
const MAX_FIELDS = 256;

/** Some parsers end a line at a lone CR, and terminals act on other control characters. */
// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\u0000-\u0008\u000a-\u001f\u007f]/;
const tokenPattern = /^[A-Za-z0-9\-.!%*_+`'~]+$/;

/** A complete header section; `bodyStart` is the offset after its empty line. */
export interface Head {
  message: SipMessage;
  bodyStart: number;
  /** `Content-Length`, if present. */
  contentLength: number | undefined;
}

/**
 * Parses one datagram. The body ends where `Content-Length` says, or with the datagram (RFC 3261 section 18.3).
 * @throws SipError SIP_MALFORMED and nothing else
 */
export function parseMessage(data: Buffer): SipMessage {
  if (data.length > MAX_MESSAGE_BYTES)
    throw new SipError('SIP_MALFORMED', `a message of ${data.length} bytes is too long`);
  const head = parseHead(data);
  if (head === undefined) throw new SipError('SIP_MALFORMED', 'the header section does not end');
  const { message, bodyStart, contentLength } = head;
  const available = data.length - bodyStart;
  if (contentLength !== undefined && contentLength > available) {
    throw new SipError('SIP_MALFORMED', `Content-Length says ${contentLength}, but only ${available} bytes follow`);
  }
  message.body = data.subarray(bodyStart, bodyStart + (contentLength ?? available));
  return message;
}

/**
 * Parses the start line and header fields; undefined until all have arrived. The search for their end starts at
 * `searched`.
 */
export function parseHead(data: Buffer, searched = 0): Head | undefined {
  // Empty lines may precede a message (section 7.5).
  let start = 0;
  while (start < data.length && (data[start] === 0x0d || data[start] === 0x0a)) start += 1;
  const bodyStart = endOfHead(data, start, Math.max(start, searched));
  if (bodyStart === undefined) {
    if (data.length - start > MAX_HEADER_BYTES) throw new SipError('SIP_MALFORMED', 'the header section is too long');
    return undefined;
  }
  if (bodyStart - start > MAX_HEADER_BYTES) throw new SipError('SIP_MALFORMED', 'the header section is too long');

  const lines = unfold(data.toString('utf8', start, bodyStart));
  const message = parseStartLine(lines[0] ?? '');
  let fields = 1;
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0)).trimEnd();
    if (colon < 1 || !tokenPattern.test(name))
      throw new SipError('SIP_MALFORMED', `${printable(line)} is not a header field`);
    fields += message.headers.add(name, line.slice(colon + 1).trim());
    if (fields > MAX_FIELDS) throw tooManyFields();
  }
  return { message, bodyStart, contentLength: contentLengthOf(message.headers) };
}

function tooManyFields(): SipError {
  return new SipError('SIP_MALFORMED', 'too many header fields');
}

/** Returns the offset after the first empty line. */
function endOfHead(data: Buffer, start: number, from: number): number | undefined {
  for (let at = data.indexOf(0x0a, from); at !== -1; at = data.indexOf(0x0a, at + 1)) {
    const next = data[at + 1] === 0x0d ? at + 2 : at + 1;
    if (data[next] === 0x0a) return next + 1;
    if (at - start > MAX_HEADER_BYTES) return undefined;
  }
  return undefined;
}

/** Splits into lines; one that starts with whitespace continues the previous one (section 7.3.1). */
function unfold(text: string): string[] {
  const lines: string[] = [];
  for (const raw of text.split('\n')) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line === '') continue;
    if (controlCharacter.test(line))
      throw new SipError('SIP_MALFORMED', `${printable(line)} contains a control character`);
    const last = lines.length - 1;
    if (/^[ \t]/.test(line) && last > 0) lines[last] = `${lines[last]} ${line.trim()}`;
    else lines.push(line);
    if ((lines.at(-1) as string).length > MAX_LINE_LENGTH) throw new SipError('SIP_MALFORMED', 'a line is too long');
    if (lines.length > MAX_FIELDS) throw tooManyFields();
  }
  return lines;
}

function parseStartLine(line: string): SipMessage {
  const response = /^SIP\/2\.0 ([1-6]\d\d)(?: (.*))?$/i.exec(line);
  const headers = new SipHeaders();
  const body = Buffer.alloc(0);
  if (response) {
    return { kind: 'response', status: Number(response[1]), reason: response[2] ?? '', headers, body };
  }
  const request = /^(\S+) (\S+) SIP\/2\.0$/i.exec(line);
  const method = request?.[1] ?? '';
  if (!request || !tokenPattern.test(method))
    throw new SipError('SIP_MALFORMED', `${printable(line)} is not a start line`);
  return { kind: 'request', method, uri: request[2] as string, headers, body };
}

function contentLengthOf(headers: SipHeaders): number | undefined {
  const values = headers.all('content-length');
  if (values.length === 0) return undefined;
  const text = values[0] as string;
  if (!/^\d{1,9}$/.test(text) || values.some((value) => value !== text)) {
    throw new SipError('SIP_MALFORMED', `Content-Length ${printable(values.join(', '))} is not a valid length`);
  }
  return Number(text);
}

/** Encodes a message, always with `Content-Length`. */
export function writeMessage(message: SipMessage): Buffer {
  const start =
    message.kind === 'request'
      ? `${message.method} ${message.uri} SIP/2.0`
      : `SIP/2.0 ${message.status} ${message.reason}`;
  // Via goes first because proxies read it first (RFC 3261 section 7.3.1).
  const lines = [start, ...message.headers.all('Via').map((value) => `Via: ${value}`)];
  for (const [name, value] of message.headers) {
    if (name !== 'Content-Length' && name !== 'Via') lines.push(`${name}: ${value}`);
  }
  lines.push(`Content-Length: ${message.body.length}`, '', '');
  return Buffer.concat([Buffer.from(lines.join('\r\n')), message.body]);
}
