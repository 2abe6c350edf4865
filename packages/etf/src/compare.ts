import { Atom } from './atoms.js';
import { BitString, ExportFun, Float, ImproperList, isRecord, Opaque, OpaqueFun, type Term, Tuple } from './terms.js';
import { Pid, Port, Ref } from './identifiers.js';

/**
 * Returns a string that is equal for equal terms. It serves as a key in a JavaScript Map, which compares tuples,
 * buffers and pids by identity. A text binary and its bytes have the same key; integers and `Float`s do not.
 */
export function structuralKey(term: Term): string {
  switch (typeof term) {
    case 'string':
      return `b${Buffer.from(term, 'utf8').toString('hex')};`;
    case 'number':
      return Number.isInteger(term) ? `i${BigInt(term)};` : `f${term};`;
    case 'bigint':
      return `i${term};`;
    case 'boolean':
    case 'undefined':
      return `a${JSON.stringify(String(term))}`;
    default:
      return term === null ? 'a"nil"' : objectKey(term);
  }
}

/** Returns whether two terms are the same term (`=:=` in Erlang), regardless of how they were decoded. */
export function sameTerm(a: Term, b: Term): boolean {
  return a === b || structuralKey(a) === structuralKey(b);
}

function objectKey(term: object): string {
  if (term instanceof Atom) return `a${JSON.stringify(term.name)}`;
  if (term instanceof Tuple) return `{${term.elements.map(structuralKey).join('')}}`;
  if (Array.isArray(term)) return `[${(term as Term[]).map(structuralKey).join('')}]`;
  if (term instanceof Uint8Array) return `b${Buffer.from(term).toString('hex')};`;
  if (term instanceof Float) return `f${Object.is(term.value, -0) ? '-0' : term.value};`;
  if (term instanceof Pid) return `p${JSON.stringify([term.node, term.id, term.serial, term.creation])}`;
  if (term instanceof Ref) return `r${JSON.stringify([term.node, term.creation, ...term.words])}`;
  if (term instanceof Port) return `o${JSON.stringify([term.node, String(term.id), term.creation])}`;
  if (term instanceof ImproperList) return `[${term.elements.map(structuralKey).join('')}|${structuralKey(term.tail)}]`;
  if (term instanceof BitString) return `B${term.bits}:${Buffer.from(term.bytes).toString('hex')};`;
  if (term instanceof ExportFun) return `x${JSON.stringify([term.module.name, term.fun.name, term.arity])}`;
  if (term instanceof OpaqueFun) return `F${Buffer.from(term.bytes).toString('hex')};`;
  if (term instanceof Opaque) return structuralKey(term.term);
  return mapKey(term);
}

function mapKey(term: object): string {
  const entries: Iterable<[Term, Term]> = term instanceof Map ? term : isRecord(term) ? Object.entries(term) : [];
  const parts = Array.from(entries, ([key, value]) => `${structuralKey(key)}>${structuralKey(value)}`);
  return `#{${parts.toSorted().join('')}}`;
}
