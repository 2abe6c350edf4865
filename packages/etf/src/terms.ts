import { type Atom, atom } from './atoms.js';
import type { Pid, Port, Ref } from './identifiers.js';

/**
 * What can be encoded. Decoding yields the same types:
 *
 * | JavaScript | Erlang |
 * |---|---|
 * | integer-valued `number`, `bigint` | integer |
 * | any other `number`, `Float` | float |
 * | `string`, `Uint8Array` | binary |
 * | `true`, `false`, `undefined`, `null` | the atoms `true`, `false`, `undefined`, `nil` |
 * | array | list |
 * | plain object | map with binary keys |
 * | `Map` | map |
 */
export type Term =
  | number
  | bigint
  | string
  | boolean
  | null
  | undefined
  | Atom
  | Float
  | Tuple
  | Pid
  | Port
  | Ref
  | ImproperList
  | BitString
  | ExportFun
  | OpaqueFun
  | Opaque
  | Uint8Array
  | readonly Term[]
  | ReadonlyMap<Term, Term>
  | { readonly [key: string]: Term };

export class Tuple {
  constructor(readonly elements: readonly Term[]) {}
}

/** `tuple(a, b)` is Erlang's `{a, b}`. */
export function tuple(...elements: readonly Term[]): Tuple {
  return new Tuple(elements);
}

/** A float that stays one: `2.0` and `2` are the same JavaScript number. */
export class Float {
  constructor(readonly value: number) {}
}

/** `[a, b | tail]` with a tail that is not a list. */
export class ImproperList {
  constructor(
    readonly elements: readonly Term[],
    readonly tail: Term,
  ) {}
}

/** A bit string that uses only the `bits` (1 to 7) highest bits of its last byte; whole bytes are a `Uint8Array`. */
export class BitString {
  constructor(
    readonly bytes: Uint8Array,
    readonly bits: number,
  ) {}
}

/** `fun Module:Function/Arity`. */
export class ExportFun {
  constructor(
    readonly module: Atom,
    readonly fun: Atom,
    readonly arity: number,
  ) {}
}

/** A closure of another node, kept as its encoded bytes (tag included) and sent on unchanged. */
export class OpaqueFun {
  constructor(readonly bytes: Uint8Array) {}
}

/** An encoded term (without version byte) that is sent on byte for byte; `term` is its meaning. */
export class Opaque {
  constructor(
    readonly bytes: Uint8Array,
    readonly term: Term,
  ) {}
}

// Objects built from a peer's map keys must not inherit anything (`constructor`, `__proto__`). A constructor with an
// empty null-prototype object as prototype ensures that and, unlike Object.create(null), keeps V8's fast shapes.
const emptyPrototype: object = Object.freeze(Object.create(null) as object);

export type TermRecord = { [key: string]: Term };

function RecordShape(this: unknown): void {}
RecordShape.prototype = emptyPrototype;

/** The constructor of decoded maps with text keys. */
export const TermRecord = RecordShape as unknown as new () => TermRecord;

/** Returns whether a decoded or encodable value is a map with text keys in its object form. */
export function isRecord(value: unknown): value is { readonly [key: string]: Term } {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === emptyPrototype || prototype === null;
}

/** Returns the bytes of a binary in either of its decoded forms. */
export function asBytes(value: Term): Buffer | undefined {
  if (typeof value === 'string') return Buffer.from(value, 'utf8');
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

/**
 * Returns the value under `key` of a map in either decoded form. Finds atom keys by name, including atoms that are not
 * shared.
 */
export function mapGet(map: Term, key: string | Atom): Term {
  if (map instanceof Map) {
    if (map.has(key)) return map.get(key) as Term;
    if (typeof key === 'string') return undefined;
    for (const [k, value] of map as Map<Term, Term>) {
      if (typeof k === 'object' && k !== null && k.constructor === key.constructor && (k as Atom).name === key.name)
        return value;
    }
    return undefined;
  }
  if (typeof key === 'string' && isRecord(map) && Object.hasOwn(map, key)) return map[key];
  return undefined;
}

/** Returns a map with atom keys, as usual in Erlang: `atomMap({ a: 1 })` is `#{a => 1}`. */
export function atomMap(entries: { readonly [key: string]: Term }): Map<Term, Term> {
  const map = new Map<Term, Term>();
  for (const [key, value] of Object.entries(entries)) map.set(atom(key), value);
  return map;
}
