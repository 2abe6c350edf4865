import { isIP } from 'node:net';
import { DistributionError } from '../errors.js';

export type NameMode = 'sname' | 'name';

/** Maximum length of a full node name, in characters. */
const MAX_NODE_NAME = 255;

export interface NodeName {
  readonly full: string;
  /** The part before `@`: the name in the port mapper. */
  readonly alive: string;
  /** The part after `@`. */
  readonly host: string;
}

/**
 * Splits `name@host`.
 * @throws DistributionError BAD_NODE_NAME unless there is exactly one `@` with text on both sides
 */
export function parseNodeName(full: string): NodeName {
  if (full.length > MAX_NODE_NAME) throw badName(full, `it has more than ${MAX_NODE_NAME} characters`);
  const at = full.indexOf('@');
  if (at < 1 || at === full.length - 1 || full.indexOf('@', at + 1) !== -1) {
    throw badName(full, 'it must be name@host');
  }
  // oxlint-disable-next-line no-control-regex
  if (/[\s\u0000-\u001f\u007f"'\\]/.test(full)) throw badName(full, 'it holds blanks, quotes or control characters');
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

/**
 * Splits a name that an Erlang node could also have.
 * @throws DistributionError BAD_NODE_NAME
 */
export function parseOwnName(full: string): NodeName {
  const name = parseNodeName(full);
  if (!/^[0-9A-Za-z_-]+$/.test(name.alive)) throw badName(full, 'before @ only letters, digits, _ and - are allowed');
  return name;
}

/** True for long names, whose host contains a dot or is an IP address. */
export function isLong(host: string): boolean {
  return host.includes('.') || isIP(host) !== 0;
}

/** @throws DistributionError NAME_KIND_MISMATCH when a node of this mode cannot talk to a node of that name */
export function checkKind({ full, host }: NodeName, mode: NameMode): void {
  if (isLong(host) === (mode === 'name')) return;
  throw new DistributionError(
    'NAME_KIND_MISMATCH',
    mode === 'sname'
      ? `${full} has a long host name and this node uses short names (sname)`
      : `${full} has a short host name and this node uses long names (name)`,
  );
}

/** Compares node names as byte strings in UTF-8. */
export function isLower(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8')) < 0;
}

function badName(name: string, why: string): DistributionError {
  return new DistributionError(
    'BAD_NODE_NAME',
    `${JSON.stringify(name.slice(0, 300))} is not a valid node name: ${why}`,
  );
}
