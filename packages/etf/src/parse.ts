import { type Atom, atom, internedAtom, isAtom, MAX_ATOM_CHARACTERS } from './atoms.js';
import { MAX_BIG_BYTES, readBig } from './bigs.js';
import { structuralKey } from './compare.js';
import { type EtfError, malformedTerm, termLimitExceeded } from './errors.js';
import { type DecodeRules, MAX_TERMS, rulesOf } from './limits.js';
import { bucketOf, keyMatches, learnShape, MAX_SHAPE_KEYS, type Shape, shapesIn, similarShape } from './shapes.js';
import { BitString, ExportFun, Float, ImproperList, OpaqueFun, type Term, TermRecord, Tuple } from './terms.js';
import { Pid, Port, Ref } from './identifiers.js';
import { Tag } from './tags.js';
import { readText, releaseText } from './text.js';
import { MAX_DEPTH, type RawBuffer } from './writer.js';

/** An empty input. */
export const EMPTY = Buffer.alloc(0) as Buffer as RawBuffer;
const TRUE = atom('true');
const FALSE = atom('false');
const UNDEFINED = atom('undefined');
const NIL = atom('nil');

/** Maximum nesting of maps as keys of maps. */
const MAX_KEY_DEPTH = 8;

/** The remaining input, and the number of terms it may still contain. */
export interface Input {
  bytes: RawBuffer;
  at: number;
  until: number;
  termsLeft: number;
}

// The state of the current read. Module variables are faster than fields here, and reading calls no foreign code that
// could start another read.
let src: RawBuffer = EMPTY;
let pos = 0;
let end = 0;
let termsLeft = 0;
let keepFloats = false;
/** Number of map keys around the term being read. */
let keyDepth = 0;
/** Outstanding elements of the surrounding lists and long tuples; each needs at least one byte and one term. */
let owed = 0;
let rules: DecodeRules = rulesOf();

const floats = new Float64Array(1);
const floatBytes = new Uint8Array(floats.buffer);

/** Reads the term at `input.at` and moves `input.at` behind it. With `wrap`, floats stay distinct from integers. */
export function parse(input: Input, by: DecodeRules, wrap: boolean): Term {
  src = input.bytes;
  pos = input.at;
  end = input.until;
  rules = by;
  termsLeft = input.termsLeft;
  keepFloats = wrap || by.wrapFloats;
  keyDepth = 0;
  owed = 0;
  try {
    const term = get(0);
    input.at = pos;
    input.termsLeft = termsLeft;
    return term;
  } finally {
    src = EMPTY;
    releaseText();
  }
}

function malformed(what: string): EtfError {
  return malformedTerm(what, pos);
}

function want(bytes: number): void {
  if (pos + bytes > end) throw malformed('the term ends early');
}

function u16(): number {
  want(2);
  pos += 2;
  return ((src[pos - 2] as number) << 8) | (src[pos - 1] as number);
}

function u32(): number {
  want(4);
  pos += 4;
  return (
    (src[pos - 4] as number) * 0x1000000 +
    (((src[pos - 3] as number) << 16) | ((src[pos - 2] as number) << 8) | (src[pos - 1] as number))
  );
}

function u8(): number {
  want(1);
  return src[pos++] as number;
}

/**
 * Reads a declared count of items that take at least `each` bytes. What the surrounding lists still need is deducted:
 * if each of 512 levels could promise the same bytes, a frame of 4 MB would reserve 16 GB.
 */
function count(each: number): number {
  const declared = u32();
  const left = end - pos - owed;
  if (declared * each > left) throw malformed(`a count of ${declared} with ${left} bytes left`);
  if (declared > termsLeft - owed) throw termLimitExceeded('terms', MAX_TERMS, pos);
  return declared;
}

function deeper(depth: number): number {
  if (depth >= MAX_DEPTH) throw termLimitExceeded('levels of nesting', MAX_DEPTH, pos);
  return depth + 1;
}

function get(depth: number): Term {
  if (pos >= end) throw malformed('the term ends early');
  if (--termsLeft < 0) throw termLimitExceeded('terms', MAX_TERMS, pos);
  switch (src[pos++]) {
    case Tag.smallInteger:
      return u8();
    case Tag.integer:
      return u32() | 0;
    case Tag.binary:
      return getBinary(rules.textValues);
    case Tag.smallAtomUtf8:
      return getAtomValue();
    case Tag.smallTuple:
      return getTuple(u8(), depth);
    case Tag.list:
      return getList(depth);
    case Tag.nil:
      return [];
    case Tag.map:
      return getMap(depth);
    case Tag.newFloat:
      return getFloat();
    case Tag.newPid:
      return getPid(true);
    case Tag.newerReference:
      return getRef(true);
    default:
      pos -= 1;
      return getRare(depth);
  }
}

function getRare(depth: number): Term {
  const tag = src[pos++] as number;
  switch (tag) {
    case Tag.smallBig:
      return getBig(u8());
    case Tag.largeBig:
      return getBig(u32());
    case Tag.float:
      return getTextFloat();
    case Tag.atomUtf8:
    case Tag.smallAtom:
    case Tag.atom:
      return atomValue(getAtomOf(tag));
    case Tag.largeTuple:
      return new Tuple(getElements(count(1), deeper(depth)));
    case Tag.string:
      return getByteList();
    case Tag.bitBinary:
      return getBits();
    case Tag.pid:
      return getPid(false);
    case Tag.newPort:
    case Tag.v4Port:
    case Tag.port:
      return getPort(tag);
    case Tag.newReference:
      return getRef(false);
    case Tag.reference:
      return getOldRef();
    case Tag.newFun:
      return getFun();
    case Tag.export:
      return new ExportFun(getAtom(), getAtom(), getArity());
    default:
      pos -= 1;
      throw malformed(`unknown tag ${tag}`);
  }
}

function getTuple(arity: number, depth: number): Tuple {
  const inner = deeper(depth);
  if (arity > end - pos) throw malformed(`a tuple of ${arity} with ${end - pos} bytes left`);
  // oxlint-disable-next-line unicorn/no-new-array -- of that size at once: growing costs a third of the speed
  const elements: Term[] = new Array<Term>(arity);
  for (let i = 0; i < arity; i++) elements[i] = get(inner);
  return new Tuple(elements);
}

/** Reads the elements of a list or long tuple. */
function getElements(length: number, inner: number): Term[] {
  const around = owed;
  // oxlint-disable-next-line unicorn/no-new-array -- as above
  const elements: Term[] = new Array<Term>(length);
  for (let i = 0; i < length; i++) {
    owed = around + length - 1 - i;
    elements[i] = get(inner);
  }
  return elements;
}

function getList(depth: number): Term {
  const inner = deeper(depth);
  const elements = getElements(count(1), inner);
  if (pos < end && src[pos] === Tag.nil) {
    pos += 1;
    return elements;
  }
  return getTail(elements, inner);
}

/**
 * Reads the rest of a list with an explicit tail: `[a | [b]]` is the list `[a, b]`. Nested tails are appended to one
 * array in a loop, because copying the rest at each level would take quadratic time.
 */
function getTail(elements: Term[], inner: number): Term {
  while (pos < end && src[pos] === Tag.list) {
    if (--termsLeft < 0) throw termLimitExceeded('terms', MAX_TERMS, pos);
    pos += 1;
    const length = count(1);
    for (let i = 0; i < length; i++) elements.push(get(inner));
  }
  const tail = get(inner);
  if (elements.length === 0) return tail;
  if (!Array.isArray(tail)) return new ImproperList(elements, tail);
  for (const element of tail as Term[]) elements.push(element);
  return elements;
}

function getByteList(): Term {
  const length = u16();
  want(length);
  if ((termsLeft -= length) < 0) throw termLimitExceeded('terms', MAX_TERMS, pos);
  const list = Array.from(src.subarray(pos, pos + length));
  pos += length;
  return list;
}

function getBinary(asText: boolean): Term {
  const length = u32();
  const start = pos;
  if (length > end - start) throw malformed(`a binary of ${length} with ${end - start} bytes left`);
  pos = start + length;
  if (asText) {
    const text = readText(src, start, length, end);
    if (text !== undefined) return text;
  }
  return bytesOf(start, length);
}

/**
 * Returns a view of the input if it is a large part of it, otherwise a copy: a small view would keep the whole input
 * alive.
 */
function bytesOf(start: number, length: number): Buffer {
  if (length > 256 && length * 4 >= src.buffer.byteLength) return src.subarray(start, start + length);
  const copy = Buffer.allocUnsafe(length);
  src.copy(copy, 0, start, start + length);
  return copy;
}

function getBits(): Term {
  const length = u32();
  const bits = u8();
  if (length === 0 ? bits !== 0 : bits < 1 || bits > 8)
    throw malformed(`a bit string with ${bits} bits in its last byte`);
  want(length);
  const bytes = bytesOf(pos, length);
  pos += length;
  return bits === 8 || length === 0 ? bytes : new BitString(bytes, bits);
}

function getFloat(): Term {
  want(8);
  for (let i = 0; i < 8; i++) floatBytes[7 - i] = src[pos + i] as number;
  const value = floats[0] as number;
  if (!Number.isFinite(value)) throw malformed('a float that is not a number');
  pos += 8;
  return keepFloats ? new Float(value) : value;
}

function getTextFloat(): Term {
  want(31);
  const text = src.latin1Slice(pos, pos + 31).replace(/\0+$/, '');
  const value = /^ *[+-]?\d+\.\d+(e[+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw malformed('a float that is not a number');
  pos += 31;
  return keepFloats ? new Float(value) : value;
}

function getBig(length: number): Term {
  if (length > MAX_BIG_BYTES) throw termLimitExceeded('bytes of an integer', MAX_BIG_BYTES, pos);
  want(length + 1);
  const negative = src[pos] !== 0;
  pos += 1 + length;
  return readBig(src, pos - length, length, negative);
}

/** Reads an atom as a value. The two most frequent ones are recognised without a lookup. */
function getAtomValue(): Term {
  const length = u8();
  if (length === 4 && pos + 4 <= end && sameBytes(TRUE.wire, 4)) {
    pos += 4;
    return true;
  }
  if (length === 5 && pos + 5 <= end && sameBytes(FALSE.wire, 5)) {
    pos += 5;
    return false;
  }
  return atomValue(getAtomBody(length, false));
}

function sameBytes(wire: Uint8Array, length: number): boolean {
  for (let i = 0; i < length; i++) if (src[pos + i] !== wire[i + 2]) return false;
  return true;
}

function atomValue(found: Atom): Term {
  if (found === TRUE) return true;
  if (found === FALSE) return false;
  if (found === UNDEFINED) return undefined;
  if (found === NIL) return null;
  return found;
}

function getAtom(): Atom {
  const tag = u8();
  if (tag === Tag.smallAtomUtf8) return getAtomBody(u8(), false);
  return getAtomOf(tag);
}

function getAtomOf(tag: number): Atom {
  if (tag === Tag.atomUtf8) return getAtomBody(u16(), false);
  if (tag === Tag.smallAtom) return getAtomBody(u8(), true);
  if (tag === Tag.atom) return getAtomBody(u16(), true);
  pos -= 1;
  throw malformed(`tag ${tag} where an atom belongs`);
}

function getAtomBody(length: number, latin1: boolean): Atom {
  want(length);
  if (length > MAX_ATOM_CHARACTERS * (latin1 ? 1 : 4)) {
    throw termLimitExceeded('characters of an atom', MAX_ATOM_CHARACTERS, pos);
  }
  const start = pos;
  let ascii = 0;
  for (let i = 0; i < length; i++) ascii |= src[start + i] as number;
  if (ascii < 128 || !latin1) {
    const known = length < 256 ? internedAtom(src, start, length) : undefined;
    if (known !== undefined) {
      pos += length;
      return known;
    }
  }
  const text = latin1 ? src.latin1Slice(start, start + length) : readText(src, start, length, end);
  if (text === undefined) throw malformed('an atom that is not UTF-8');
  if (text.length > MAX_ATOM_CHARACTERS && Array.from(text).length > MAX_ATOM_CHARACTERS) {
    throw termLimitExceeded('characters of an atom', MAX_ATOM_CHARACTERS, pos);
  }
  pos += length;
  return atom(text);
}

function getPid(wide: boolean): Pid {
  const node = getAtom().name;
  const id = u32();
  const serial = u32();
  return new Pid(node, id, serial, wide ? u32() : u8());
}

function getPort(tag: number): Port {
  const node = getAtom().name;
  let id = BigInt(u32());
  if (tag === Tag.v4Port) id = (id << 32n) | BigInt(u32());
  return new Port(node, id, tag === Tag.port ? u8() : u32());
}

function getRef(wide: boolean): Ref {
  const length = u16();
  if (length < 1) throw malformed('a reference without words');
  if (length > 5) throw termLimitExceeded('words of a reference', 5, pos);
  const node = getAtom().name;
  const creation = wide ? u32() : u8();
  const words: number[] = [];
  for (let i = 0; i < length; i++) words.push(u32());
  return new Ref(node, creation, words);
}

function getOldRef(): Ref {
  const node = getAtom().name;
  const id = u32();
  return new Ref(node, u8(), [id]);
}

function getFun(): OpaqueFun {
  const start = pos - 1;
  const size = u32();
  if (size < 4 || size > end - start - 1) throw malformed(`a fun of ${size} bytes`);
  pos = start + 1 + size;
  return new OpaqueFun(Uint8Array.prototype.slice.call(src, start, pos));
}

function getArity(): number {
  if (u8() !== Tag.smallInteger) throw malformed('a fun without arity');
  return u8();
}

function getMap(depth: number): Term {
  const inner = deeper(depth);
  const size = count(2);
  if (size === 0) return rules.records ? new TermRecord() : new Map<Term, Term>();
  if (!rules.records || !rules.textKeys || size > MAX_SHAPE_KEYS || pos + 6 > end || src[pos] !== Tag.binary) {
    return getPlainMap(new Map(), size, inner, -1);
  }
  const bucket = bucketOf(src, pos, size);
  for (const shape of shapesIn(bucket)) {
    if (shape.keys.length === size && keyMatches(shape, 0, src, pos, end)) return getShaped(shape, bucket, size, inner);
  }
  return getPlainMap(new Map(), size, inner, bucket);
}

function getShaped(first: Shape, bucket: number, size: number, inner: number): Term {
  let shape = first;
  const made = new TermRecord();
  for (let i = 0; i < size; i++) {
    if (i > 0 && !keyMatches(shape, i, src, pos, end)) {
      const other = similarShape(bucket, shape, i, src, pos, end);
      if (other === undefined) {
        const read = new Map<Term, Term>();
        for (let j = 0; j < i; j++) read.set(shape.keys[j], made[shape.keys[j] as string]);
        return getPlainMap(read, size, inner, bucket);
      }
      shape = other;
    }
    pos += (shape.wires[i] as Uint8Array).length;
    if (--termsLeft < 0) throw termLimitExceeded('terms', MAX_TERMS, pos);
    made[shape.keys[i] as string] = get(inner);
  }
  return made;
}

/** Reads the rest of a map of `size` keys into `map`, and converts it to an object if all its keys are text. */
function getPlainMap(map: Map<Term, Term>, size: number, inner: number, bucket: number): Term {
  let structural: Set<string> | undefined;
  let allText = true;
  for (let i = map.size; i < size; i++) {
    const start = pos;
    const key = getKey(inner);
    if (typeof key !== 'string') {
      allText = false;
      // To a Map all object keys differ, except shared atoms.
      if (typeof key === 'object' && key !== null && !(isAtom(key) && atom(key.name) === key)) {
        structural ??= new Set();
        const identity = structuralKey(key);
        if (structural.has(identity)) throw malformedTerm('a map with the same key twice', start);
        structural.add(identity);
      }
    }
    map.set(key, get(inner));
    if (map.size !== i + 1) throw malformedTerm('a map with the same key twice', start);
  }
  // Copying an object with this key elsewhere could set the prototype of the copy; in a Map it is harmless.
  if (!allText || !rules.records || map.has('__proto__')) return map;
  const made = new TermRecord();
  for (const [key, value] of map) made[key as string] = value;
  if (bucket >= 0) learnShape(bucket, [...map.keys()] as string[], made);
  return made;
}

function getKey(depth: number): Term {
  if (pos < end && src[pos] === Tag.binary) {
    if (--termsLeft < 0) throw termLimitExceeded('terms', MAX_TERMS, pos);
    pos += 1;
    return getBinary(rules.textKeys);
  }
  // 1 and 1.0 are different keys in Erlang but the same number here.
  const outer = keepFloats;
  keepFloats = true;
  // Each key is compared in full, so a nested key is read once per level of nesting.
  if (++keyDepth > MAX_KEY_DEPTH) throw termLimitExceeded('levels of map keys', MAX_KEY_DEPTH, pos);
  const key = get(depth);
  keyDepth -= 1;
  keepFloats = outer;
  return key;
}
