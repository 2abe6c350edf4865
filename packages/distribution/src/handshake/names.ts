import { isIP } from 'node:net';
import { BadNodeName, NameKindMismatch } from '../errors.js';

export type NameMode = 'sname' | 'name';

/** Longest full node name, in characters. */
export const MAX_NODE_NAME = 255;

export interface NodeName {
  readonly full: string;
  /** Before `@`: what the port mapper knows. */
  readonly alive: string;
  /** After `@`. */
  readonly host: string;
}

/** Splits `name@host`. Throws BadNodeName unless there is something on either side of exactly one `@`. */
export function parseNodeName(full: string): NodeName {
  if (full.length > MAX_NODE_NAME) throw new BadNodeName(full, `it has more than ${MAX_NODE_NAME} characters`);
  const at = full.indexOf('@');
  if (at < 1 || at === full.length - 1 || full.indexOf('@', at + 1) !== -1) {
    throw new BadNodeName(full, 'it must be name@host');
  }
  // oxlint-disable-next-line no-control-regex
  if (/[\s\u0000-\u001f\u007f"'\\]/.test(full))
    throw new BadNodeName(full, 'it holds blanks, quotes or control characters');
  return { full, alive: full.slice(0, at), host: full.slice(at + 1) };
}

export function isNodeName(text: string): boolean {
  try {
    parseNodeName(text);
    return true;
  } catch {
    return false;
  }
}

/** A name an Erlang node could have, too. Throws BadNodeName. */
export function parseOwnName(full: string): NodeName {
  const name = parseNodeName(full);
  if (!/^[0-9A-Za-z_-]+$/.test(name.alive))
    throw new BadNodeName(full, 'before @ only letters, digits, _ and - are allowed');
  return name;
}

/** Long names have a dot in the host, or an IP address as host. */
export function isLong(host: string): boolean {
  return host.includes('.') || isIP(host) !== 0;
}

/** Throws NameKindMismatch when a node of this mode cannot talk to a node of that name. */
export function checkKind(name: NodeName, mode: NameMode): void {
  if (isLong(name.host) !== (mode === 'name')) throw new NameKindMismatch(name.full, mode);
}

/** Node names are ordered as the byte strings of their UTF-8 form. */
export function isLower(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8')) < 0;
}
