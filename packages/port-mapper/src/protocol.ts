import { isUtf8 } from 'node:buffer';

// The protocol of epmd (Erlang distribution protocol, "The Protocol between epmd and a node"). Requests start with a
// 16-bit length, replies do not.

export const DEFAULT_PORT = 4369;

/** Maximum length of a request body. */
export const MAX_REQUEST_BYTES = 4_096;

/** Maximum length of a name, in characters. */
const MAX_NAME_CHARACTERS = 255;

export const NODE_TYPE = { normal: 77, hidden: 72 } as const;

const TAG = {
  dump: 100,
  kill: 107,
  names: 110,
  stop: 115,
  alive2X: 118,
  port2: 119,
  alive2: 120,
  alive2Reply: 121,
  portPlease2: 122,
} as const;

/** What a node registers and a lookup returns. */
export interface NodeEntry {
  readonly name: string;
  /** Port of the distribution listener. */
  readonly port: number;
  /** 77: normal, 72: hidden. */
  readonly nodeType: number;
  /** 0: TCP. */
  readonly protocol: number;
  /** Highest and lowest version of the distribution protocol that the node speaks. */
  readonly highest: number;
  readonly lowest: number;
  /** Opaque; stored and returned unchanged. */
  readonly extra: Buffer;
}

export type Request =
  | { readonly kind: 'alive2'; readonly entry: NodeEntry }
  /** A registration with a refused name: too long, not UTF-8, or with control characters. */
  | { readonly kind: 'alive2-bad-name'; readonly highest: number }
  | { readonly kind: 'port2'; readonly name: string }
  | { readonly kind: 'names' | 'dump' | 'kill' }
  | { readonly kind: 'stop'; readonly name: string };

/** Returns the request in a body (without its length), or undefined for an invalid one. Never throws. */
export function parseRequest(body: Buffer): Request | undefined {
  switch (body[0]) {
    case TAG.alive2:
      return parseAlive2(body);
    case TAG.portPlease2:
      return parseNamed('port2', body);
    case TAG.stop:
      return parseNamed('stop', body);
    case TAG.names:
      return { kind: 'names' };
    case TAG.dump:
      return { kind: 'dump' };
    case TAG.kill:
      return { kind: 'kill' };
    default:
      return undefined;
  }
}

function parseAlive2(body: Buffer): Request | undefined {
  if (body.length < 13) return undefined;
  const nameLength = body.readUInt16BE(9);
  const nameEnd = 11 + nameLength;
  if (nameLength === 0 || nameEnd + 2 > body.length) return undefined;
  const extraEnd = nameEnd + 2 + body.readUInt16BE(nameEnd);
  if (extraEnd > body.length) return undefined;
  const name = body.subarray(11, nameEnd);
  if (name.includes(0)) return undefined;
  const highest = body.readUInt16BE(5);
  if (!isName(name)) return { kind: 'alive2-bad-name', highest };
  return {
    kind: 'alive2',
    entry: {
      name: name.toString('utf8'),
      port: body.readUInt16BE(1),
      nodeType: body[3] as number,
      protocol: body[4] as number,
      highest,
      lowest: body.readUInt16BE(7),
      extra: Buffer.from(body.subarray(nameEnd + 2, extraEnd)),
    },
  };
}

function parseNamed(kind: 'port2' | 'stop', body: Buffer): Request | undefined {
  const end = body[body.length - 1] === 0 ? body.length - 1 : body.length;
  const name = body.subarray(1, end);
  if (name.length === 0 || name.includes(0) || !isName(name)) return undefined;
  return { kind, name: name.toString('utf8') };
}

/** Refuses control characters: a line feed in a name could forge a line of `epmd -names`. */
function isName(bytes: Buffer): boolean {
  if (bytes.length > MAX_NAME_CHARACTERS * 4 || !isUtf8(bytes) || characters(bytes) > MAX_NAME_CHARACTERS) return false;
  // oxlint-disable-next-line no-control-regex
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(bytes.toString('utf8'));
}

function characters(utf8: Buffer): number {
  let count = 0;
  for (const byte of utf8) if ((byte & 0xc0) !== 0x80) count += 1;
  return count;
}

function framed(body: Buffer): Buffer {
  const request = Buffer.alloc(2 + body.length);
  request.writeUInt16BE(body.length);
  body.copy(request, 2);
  return request;
}

/** Returns a message about a node: its first bytes, then the entry as in ALIVE2_REQ and PORT2_RESP. */
function entryMessage(start: readonly number[], entry: NodeEntry): Buffer {
  const name = Buffer.from(entry.name, 'utf8');
  const fields = Buffer.alloc(10);
  fields.writeUInt16BE(entry.port, 0);
  fields[2] = entry.nodeType;
  fields[3] = entry.protocol;
  fields.writeUInt16BE(entry.highest, 4);
  fields.writeUInt16BE(entry.lowest, 6);
  fields.writeUInt16BE(name.length, 8);
  const extraLength = Buffer.alloc(2);
  extraLength.writeUInt16BE(entry.extra.length);
  return Buffer.concat([Buffer.from(start), fields, name, extraLength, entry.extra]);
}

export function alive2Request(entry: NodeEntry): Buffer {
  return framed(entryMessage([TAG.alive2], entry));
}

export function portPlease2Request(name: string): Buffer {
  return framed(Buffer.concat([Buffer.from([TAG.portPlease2]), Buffer.from(name, 'utf8')]));
}

export function namesRequest(): Buffer {
  return framed(Buffer.from([TAG.names]));
}

/**
 * Returns the answer to a registration. Nodes of version 6 get ALIVE2_X_RESP with a 32-bit creation, older ones 16
 * bits.
 */
export function alive2Reply(highest: number, result: number, creation: number): Buffer {
  const wide = highest >= 6;
  const reply = Buffer.alloc(wide ? 6 : 4);
  reply[0] = wide ? TAG.alive2X : TAG.alive2Reply;
  reply[1] = result;
  if (wide) reply.writeUInt32BE(creation, 2);
  else reply.writeUInt16BE(creation, 2);
  return reply;
}

export function port2Reply(entry: NodeEntry | undefined): Buffer {
  return entry === undefined ? Buffer.from([TAG.port2, 1]) : entryMessage([TAG.port2, 0], entry);
}

/** Returns the reply to NAMES or DUMP: the port of the mapper, then text. */
export function listReply(mapperPort: number, text: string): Buffer {
  const lines = Buffer.from(text, 'utf8');
  const reply = Buffer.alloc(4 + lines.length);
  reply.writeUInt32BE(mapperPort);
  lines.copy(reply, 4);
  return reply;
}

export type Alive2Answer = { readonly result: number; readonly creation: number };

/** Returns the answer to a registration, `incomplete` while bytes are missing, or undefined when it is invalid. */
export function parseAlive2Reply(reply: Buffer): Alive2Answer | 'incomplete' | undefined {
  if (reply.length === 0) return 'incomplete';
  const wide = reply[0] === TAG.alive2X;
  if (!wide && reply[0] !== TAG.alive2Reply) return undefined;
  if (reply.length < (wide ? 6 : 4)) return 'incomplete';
  if (reply.length > (wide ? 6 : 4)) return undefined;
  return { result: reply[1] as number, creation: wide ? reply.readUInt32BE(2) : reply.readUInt16BE(2) };
}

/**
 * Returns the node in a PORT2_RESP, `missing`, `incomplete` while bytes are missing, or undefined when it is invalid.
 */
export function parsePort2Reply(reply: Buffer): NodeEntry | 'missing' | 'incomplete' | undefined {
  if (reply.length < 2) return reply.length === 0 || reply[0] === TAG.port2 ? 'incomplete' : undefined;
  if (reply[0] !== TAG.port2) return undefined;
  if (reply[1] !== 0) return 'missing';
  if (reply.length < 12) return 'incomplete';
  const nameEnd = 12 + reply.readUInt16BE(10);
  if (reply.length < nameEnd + 2) return 'incomplete';
  const extraEnd = nameEnd + 2 + reply.readUInt16BE(nameEnd);
  if (reply.length < extraEnd) return 'incomplete';
  return {
    name: reply.toString('utf8', 12, nameEnd),
    port: reply.readUInt16BE(2),
    nodeType: reply[4] as number,
    protocol: reply[5] as number,
    highest: reply.readUInt16BE(6),
    lowest: reply.readUInt16BE(8),
    extra: Buffer.from(reply.subarray(nameEnd + 2, extraEnd)),
  };
}

export interface NamesAnswer {
  readonly mapperPort: number;
  readonly nodes: readonly { readonly name: string; readonly port: number }[];
}

/** Returns a complete NAMES reply (up to the close), or undefined when it is invalid. */
export function parseNamesReply(reply: Buffer): NamesAnswer | undefined {
  if (reply.length < 4) return undefined;
  const mapperPort = reply.readUInt32BE(0);
  if (mapperPort > 0xffff) return undefined;
  const nodes: { name: string; port: number }[] = [];
  for (const line of reply.toString('utf8', 4).split('\n')) {
    if (line === '') continue;
    const match = /^name (.+) at port (\d{1,5})$/.exec(line);
    if (match === null) return undefined;
    nodes.push({ name: match[1] as string, port: Number(match[2]) });
  }
  return { mapperPort, nodes };
}
