import { atom, Opaque, Pid, Ref, type Term, type TermReader, Tuple, ImproperList, isAtom, tuple } from '@bloom/etf';

// Calls as gen_server, gen_statem and net_kernel make them: {'$gen_call', {Pid, Tag}, Request}. The tag is a reference,
// [alias | Ref] or [[alias | Ref] | Extra]. Its bytes are kept because it must be returned unchanged.

const GEN_CALL = atom('$gen_call');

export interface GenCall {
  readonly from: Pid;
  readonly tag: Opaque;
  readonly request: Term;
}

/** Reads a payload, starting with its version byte. The tag of a call is returned as an `Opaque`. */
export function readPayload(reader: TermReader): Term {
  reader.version();
  const start = reader.position;
  if (reader.peek() !== 104) return reader.part();
  if (reader.tupleHeader() === 3 && reader.skip(GEN_CALL.wire) && reader.tupleHeader() === 2) {
    const from = reader.part();
    const tag = reader.opaque();
    return tuple(GEN_CALL, tuple(from, tag), reader.part());
  }
  reader.rewind(start);
  return reader.part();
}

/** Returns the call in a message from another node, or undefined for any other message. */
export function asGenCall(message: Term): GenCall | undefined {
  if (!(message instanceof Tuple) || message.elements.length !== 3) return undefined;
  const [head, from, request] = message.elements;
  if (!isAtom(head, '$gen_call') || !(from instanceof Tuple) || from.elements.length !== 2) return undefined;
  const [pid, tag] = from.elements;
  return pid instanceof Pid && tag instanceof Opaque ? { from: pid, tag, request } : undefined;
}

/** Returns the alias that receives the reply to a call with this tag, if any. */
export function aliasOf(tag: Term): Ref | undefined {
  const term = tag instanceof Opaque ? tag.term : tag;
  if (!(term instanceof ImproperList)) return undefined;
  const [first] = term.elements;
  if (isAtom(first, 'alias')) return term.tail instanceof Ref ? term.tail : undefined;
  return first instanceof ImproperList ? aliasOf(first) : undefined;
}
