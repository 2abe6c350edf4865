import { asBytes, atom, Atom, encode, isAtom, type Term, Tuple, tuple } from '@bloom/etf';
import type { Down, StopReason } from '../behaviour.js';
import { Exit, RemoteFault } from '../errors.js';

// Why an actor ended, in Erlang's terms: `normal`, `shutdown`, `{crashed, Text}` or a custom reason.

const NORMAL = atom('normal');
const CRASHED = atom('crashed');
const LONGEST_TEXT = 2_000;

/** Returns the reason for monitors and links on other nodes. Never throws. */
export function exitReason(reason: StopReason, error: unknown): Term {
  if (error instanceof Exit && isEncodable(error.reason)) return error.reason;
  return reason === 'normal' ? NORMAL : tuple(CRASHED, faultText(error));
}

/** Returns the part of a fault that travels: its message without its stack. */
export function faultText(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_TEXT);
}

/** Returns what a watcher here receives for a reason from another node. */
export function downOf(reason: Term, node: string): Pick<Down, 'reason' | 'error'> {
  if (isAtom(reason, 'noproc')) return { reason: 'noprocess' };
  if (isAtom(reason, 'noconnection')) return { reason: 'noconnection' };
  if (isOrderly(reason)) return { reason: 'normal' };
  return { reason: 'crashed', error: new RemoteFault(node, reason, reasonText(reason)) };
}

/** True for `normal`, `shutdown` and `{shutdown, _}`. */
export function isOrderly(reason: Term): boolean {
  if (reason instanceof Tuple) return reason.elements.length === 2 && isAtom(reason.elements[0], 'shutdown');
  return isAtom(reason, 'normal') || isAtom(reason, 'shutdown');
}

/** Returns a reason as text for a log line. */
export function reasonText(reason: Term): string {
  if (reason instanceof Atom) return reason.name;
  if (reason instanceof Tuple && isAtom(reason.elements[0], 'crashed')) return reasonText(reason.elements[1]);
  if (typeof reason === 'string' || reason instanceof Uint8Array) {
    return asBytes(reason)?.toString('utf8', 0, LONGEST_TEXT) ?? '';
  }
  if (reason instanceof Tuple)
    return `{${reason.elements.slice(0, 8).map(reasonText).join(', ')}}`.slice(0, LONGEST_TEXT);
  return typeof reason === 'object' && reason !== null ? 'a term' : String(reason);
}

export function isEncodable(term: Term): boolean {
  try {
    encode(term);
    return true;
  } catch {
    return false;
  }
}
