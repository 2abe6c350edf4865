import {
  asBytes,
  Atom,
  atom,
  decode,
  encode,
  Float,
  isDecodeError,
  isRecord,
  Pid,
  type Term,
  Tuple,
  tuple,
} from '@bloom/etf';
import { notSendable } from '../errors.js';
import { LocalRef, RemoteRef, type AnyRef } from '../ref.js';

// Messages between our actors as terms, and back. Text is a binary, an object a map with binary keys, an actor its pid.
// Values that JavaScript distinguishes and Erlang does not become tuples that start with one of these words:

const BYTES = atom('$bytes'); // a Uint8Array; a bare binary is a string
const BIGINT = atom('$bigint'); // a bigint; a bare integer is a number
const NUMBER = atom('$number'); // NaN and the infinities, as text
const MAP = atom('$map'); // list of [key, value]
const SET = atom('$set');
const OBJECT = atom('$object'); // like $map, for keys that are not valid Unicode
const UTF16 = atom('$utf16'); // a string that is not valid Unicode, as its code units
const ACTOR = atom('$actor'); // name and node of a registered actor

const DEEP = atom('$deep'); // bytes of a separate term that continues the nesting

/** Nesting levels of one term. Clients may nest metadata as deeply as a term, and a message adds further levels. */
const MAX_LEVELS = 240;
/** Maximum depth of terms within terms. */
const MAX_DEEP = 4;

/** Node.js has it, but its type definitions do not. */
interface WellFormed {
  isWellFormed(): boolean;
}

export interface Addresses {
  /** Returns the pid of an actor in this process. */
  pidOf(ref: LocalRef): Pid;
  refOf(pid: Pid): AnyRef;
  named(node: string, name: string): AnyRef;
}

/** Values that can travel: plain data, Map, Set, bytes, bigint and refs. */
export class PlainData {
  readonly #addresses: Addresses;
  #deep = 0;

  constructor(addresses: Addresses) {
    this.#addresses = addresses;
  }

  /**
   * Converts a value to a term. The two share parts that need no change, so do not change the value before the term is
   * written. Undefined fields are left out. Throws NotSendable.
   */
  toTerm(value: unknown): Term {
    return this.#to(value, 0);
  }

  /** Converts a decoded term, which it uses up, to a value. Objects have no prototype; other terms stay terms. */
  toValue(term: Term): unknown {
    return this.#from(term);
  }

  #to(value: unknown, depth: number): Term {
    switch (typeof value) {
      case 'string':
        return isUnicode(value) ? value : tuple(UTF16, Buffer.from(value, 'utf16le'));
      case 'number':
        return numberTerm(value);
      case 'boolean':
      case 'undefined':
        return value;
      case 'bigint':
        return tuple(BIGINT, value);
      case 'object':
        return value === null ? null : this.#objectTerm(value, depth + 1);
      default:
        throw notSendable(`a ${typeof value} is not plain data`);
    }
  }

  #objectTerm(value: object, depth: number): Term {
    if (depth > MAX_LEVELS) return this.#deeper(() => tuple(DEEP, encode(this.#to(value, 0))));
    if (Array.isArray(value)) return this.#listTerm(value, depth);
    if (isRecord(value)) return this.#recordTerm(value, depth);
    if (value instanceof LocalRef) return this.#addresses.pidOf(value);
    if (value instanceof RemoteRef) {
      return typeof value.to === 'string' ? tuple(ACTOR, value.to, value.node) : value.to;
    }
    if (value instanceof Uint8Array) return tuple(BYTES, value);
    if (value instanceof Map) return tuple(MAP, this.#pairs(value, depth + 2));
    if (value instanceof Set) return tuple(SET, this.#listTerm([...value], depth + 1));
    throw notSendable(`a ${value.constructor?.name ?? 'foreign object'} is not plain data`);
  }

  #deeper<T>(run: () => T): T {
    if (this.#deep === MAX_DEEP) {
      throw notSendable(`the message is nested deeper than ${MAX_LEVELS * (MAX_DEEP + 1)} levels`);
    }
    this.#deep++;
    try {
      return run();
    } finally {
      this.#deep--;
    }
  }

  #listTerm(list: readonly unknown[], depth: number): Term {
    for (let i = 0; i < list.length; i++) {
      const term = this.#to(list[i], depth);
      if (term === list[i]) continue;
      const copy = list.slice(0, i) as Term[];
      copy.push(term);
      for (let j = i + 1; j < list.length; j++) copy.push(this.#to(list[j], depth));

      return copy;
    }

    return list as readonly Term[];
  }

  #recordTerm(record: { readonly [key: string]: unknown }, depth: number): Term {
    let copy: { [key: string]: Term } | undefined;
    const keys = Object.keys(record);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string;
      // Two keys that are not valid Unicode could become equal, which no map allows.
      if (!isUnicode(key)) return tuple(OBJECT, this.#pairs(Object.entries(record), depth + 2));
      const value = record[key];
      const term = this.#to(value, depth);
      if (copy === undefined) {
        if (term === value && value !== undefined) continue;
        copy = Object.create(null) as { [key: string]: Term };
        for (let j = 0; j < i; j++) copy[keys[j] as string] = record[keys[j] as string] as Term;
      }
      if (value !== undefined) copy[key] = term;
    }

    return copy ?? (record as { readonly [key: string]: Term });
  }

  #pairs(entries: Iterable<readonly [unknown, unknown]>, depth: number): Term {
    return Array.from(entries, ([key, value]) => [this.#to(key, depth), this.#to(value, depth)]);
  }

  // A decoded term is at most as deep as the decoder allows.
  #from(term: Term): unknown {
    if (typeof term !== 'object' || term === null) return term;
    if (Array.isArray(term)) return this.#fromList(term as Term[]);
    if (isRecord(term)) {
      const record = term as { [key: string]: unknown };
      for (const key in record) {
        const inner = record[key];
        if (typeof inner === 'object' && inner !== null) record[key] = this.#from(inner as Term);
      }
      return record;
    }
    if (term instanceof Pid) return this.#addresses.refOf(term);
    if (term instanceof Tuple) return this.#fromTuple(term);
    if (term instanceof Map) return this.#fromMap(term as Map<Term, Term>);
    return term;
  }

  #fromList(list: Term[]): unknown[] {
    const values = list as unknown[];
    for (let i = 0; i < list.length; i++) {
      const inner = list[i];
      if (typeof inner === 'object' && inner !== null) values[i] = this.#from(inner);
    }

    return values;
  }

  #fromTuple(term: Tuple): unknown {
    const { elements } = term;
    const [tag, a, b] = elements;
    if (!(tag instanceof Atom) || !tag.name.startsWith('$')) return term;
    if (elements.length === 3) {
      return is(tag, ACTOR) && typeof a === 'string' && typeof b === 'string' ? this.#addresses.named(b, a) : term;
    }
    if (elements.length !== 2) return term;
    if (is(tag, BYTES)) return asBytes(a) ?? term;
    if (is(tag, BIGINT)) return typeof a === 'bigint' || Number.isInteger(a) ? BigInt(a as number | bigint) : term;
    if (is(tag, NUMBER)) return typeof a === 'string' ? Number(a) : term;
    if (is(tag, DEEP)) return this.#fromDeep(term, asBytes(a));
    if (is(tag, UTF16)) return asBytes(a)?.toString('utf16le') ?? term;
    if (!Array.isArray(a)) return term;
    if (is(tag, SET)) return new Set(this.#fromList(a as Term[]));
    if (is(tag, MAP)) return new Map(this.#fromPairs(a as Term[]));
    return is(tag, OBJECT) ? objectOf(this.#fromPairs(a as Term[])) : term;
  }

  #fromDeep(term: Tuple, bytes: Buffer | undefined): unknown {
    if (bytes === undefined || this.#deep === MAX_DEEP) return term;
    try {
      return this.#deeper(() => this.#from(decode(bytes)));
    } catch (error) {
      if (isDecodeError(error)) return term;
      throw error;
    }
  }

  #fromPairs(list: Term[]): [unknown, unknown][] {
    const pairs = list.filter((pair): pair is [Term, Term] => Array.isArray(pair) && pair.length === 2);

    return pairs.map(([key, value]) => [this.#from(key), this.#from(value)]);
  }

  /** Handles a map with a key that cannot be a field: `__proto__`, or from Erlang any key that is not text. */
  #fromMap(map: Map<Term, Term>): unknown {
    const pairs = Array.from(map, ([key, value]): [unknown, unknown] => [this.#from(key), this.#from(value)]);

    return pairs.every(([key]) => typeof key === 'string') ? objectOf(pairs) : new Map(pairs);
  }
}

function is(found: Atom, tag: Atom): boolean {
  return found === tag || found.name === tag.name;
}

function objectOf(pairs: readonly (readonly [unknown, unknown])[]): object {
  // Without a prototype `__proto__` has no setter and is a key like any other.
  const record = Object.create(null) as { [key: string]: unknown };
  for (const [key, value] of pairs) if (typeof key === 'string') record[key] = value;

  return record;
}

function isUnicode(text: string): boolean {
  return (text as string & WellFormed).isWellFormed();
}

function numberTerm(value: number): Term {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? new Float(value) : value;
  if (!Number.isFinite(value)) return tuple(NUMBER, String(value));
  // A large integer would come back as a bigint.
  return Number.isInteger(value) ? new Float(value) : value;
}
