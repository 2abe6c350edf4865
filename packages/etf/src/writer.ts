import { Atom, atom } from './atoms.js';
import { bigBytes, MAX_BIG_BYTES } from './bigs.js';
import { notEncodable } from './errors.js';
import { MAX_TERMS } from './limits.js';
import { BitString, ExportFun, Float, ImproperList, isRecord, Opaque, OpaqueFun, type Term, Tuple } from './terms.js';
import { Pid, Port, Ref } from './identifiers.js';
import { Tag, VERSION } from './tags.js';

/** Maximum nesting depth: a peer of ours would refuse more, and a value that contains itself ends here. */
export const MAX_DEPTH = 512;

/**
 * Maximum number of terms written: a peer of ours would end the connection. The difference is for the surrounding
 * message.
 */
const MAX_WRITTEN_TERMS = MAX_TERMS - 1_000;

/** Maximum output of one writer: 64 MiB, the frame limit of our peers. */
const MAX_TERM_BYTES = 64 * 1024 * 1024;

/** Buffer methods that every Node has but its types lack. */
export interface RawBuffer extends Buffer {
  utf8Write(text: string, offset: number, length?: number): number;
  utf8Slice(start: number, end: number): string;
  latin1Slice(start: number, end: number): string;
}

/**
 * A growing buffer to which terms are appended. `clear()` reuses `bytes`, so callers that keep a view longer must copy
 * it or take the whole buffer with `take()`.
 */
export class TermWriter {
  bytes: Buffer;
  length = 0;

  constructor(
    readonly initialBytes = 4_096,
    readonly maxBytes = MAX_TERM_BYTES,
  ) {
    this.bytes = Buffer.allocUnsafeSlow(initialBytes);
  }

  /** Returns what was written since the last `clear()` or `take()`. */
  view(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }

  /** Hands over the written bytes and continues with `next` or a new buffer. */
  take(next?: Buffer): Buffer {
    const taken = this.view();
    this.bytes = next ?? Buffer.allocUnsafeSlow(this.initialBytes);
    this.length = 0;
    return taken;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.bytes[this.length++] = value;
  }

  u32(value: number): void {
    this.#reserve(4);
    this.length = this.bytes.writeUInt32BE(value, this.length);
  }

  /** Overwrites four previously written bytes. */
  patchU32(offset: number, value: number): void {
    this.bytes.writeUInt32BE(value, offset);
  }

  raw(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#reserve(length);
    const target = this.bytes;
    const at = this.length;
    // Calling set() costs more than copying a few dozen bytes.
    if (length < 48) for (let i = 0; i < length; i++) target[at + i] = bytes[i] as number;
    else target.set(bytes, at);
    this.length = at + length;
  }

  /** Appends a term with its version byte. When it throws, nothing has been appended. */
  term(term: Term): void {
    this.#start(term, true);
  }

  /** Appends a term without a version byte, as part of a larger one. */
  part(term: Term): void {
    this.#start(term, false);
  }

  #start(term: Term, version: boolean): void {
    // The encoder's state is in module variables, which are faster than fields on the hot path. A getter of an encoded
    // object could itself encode something; saving and restoring the state keeps that correct.
    const outerOut = out;
    const outerPos = pos;
    const outerCapacity = capacity;
    const outerLimit = limit;
    const outerTermsLeft = termsLeft;
    out = this.bytes as RawBuffer;
    pos = this.length;
    capacity = out.length;
    limit = this.maxBytes;
    termsLeft = MAX_WRITTEN_TERMS;
    try {
      if (version) {
        need(1);
        out[pos++] = VERSION;
      }
      put(term, 0);
      this.bytes = out;
      this.length = pos;
    } finally {
      out = outerOut;
      pos = outerPos;
      capacity = outerCapacity;
      limit = outerLimit;
      termsLeft = outerTermsLeft;
    }
  }

  #reserve(bytes: number): void {
    if (this.length + bytes > this.bytes.length) this.bytes = enlarged(this.bytes, this.length, bytes, this.maxBytes);
  }
}

const shared = new TermWriter(16_384);

/**
 * Returns the term with its version byte in a separate buffer.
 * @throws EtfError NOT_ENCODABLE
 */
export function encode(term: Term): Buffer {
  const writer = capacity === 0 ? shared : new TermWriter();
  writer.clear();
  writer.term(term);
  const bytes = Buffer.allocUnsafe(writer.length);
  writer.bytes.copy(bytes, 0, 0, writer.length);
  if (writer.bytes.length > 1_048_576) writer.take();
  return bytes;
}

/** Returns the term without a version byte. */
export function encodePart(term: Term): Buffer {
  return encode(term).subarray(1);
}

let out = Buffer.alloc(0) as Buffer as RawBuffer;
let pos = 0;
let capacity = 0; // 0: nothing is being encoded
let limit = 0;
let termsLeft = 0;

const floats = new Float64Array(1);
const floatBytes = new Uint8Array(floats.buffer);

function need(bytes: number): void {
  if (pos + bytes > capacity) grow(bytes);
}

function grow(bytes: number): void {
  out = enlarged(out, pos, bytes, limit) as RawBuffer;
  capacity = out.length;
}

function enlarged(old: Buffer, used: number, bytes: number, maxBytes: number): Buffer {
  const wanted = used + bytes;
  // The margin is needed because text reserves up to three times what is then written.
  if (wanted > maxBytes * 3 + 1_024) throw notEncodable(`the encoded term is larger than ${maxBytes} bytes`);
  let size = Math.max(old.length * 2, 1_024);
  while (size < wanted) size *= 2;
  const bigger = Buffer.allocUnsafeSlow(size);
  old.copy(bigger, 0, 0, used);
  return bigger;
}

function take(): void {
  if (--termsLeft < 0) throw notEncodable(`the term has more than ${MAX_WRITTEN_TERMS} parts`);
}

function put(term: Term, depth: number): void {
  take();
  switch (typeof term) {
    case 'string':
      putText(term);
      return;
    case 'number':
      putNumber(term);
      return;
    case 'boolean':
      putBytes(term ? TRUE : FALSE);
      return;
    case 'object':
      if (term === null) putBytes(NIL_ATOM);
      else if (Array.isArray(term)) putList(term as readonly Term[], depth);
      else putObject(term as object, depth);
      return;
    case 'undefined':
      putBytes(UNDEFINED);
      return;
    case 'bigint':
      putBigint(term);
      return;
    default:
      throw notEncodable(`a ${typeof term} has no form in the external term format`);
  }
}

const TRUE = atom('true').wire;
const FALSE = atom('false').wire;
const NIL_ATOM = atom('nil').wire;
const UNDEFINED = atom('undefined').wire;

function putBytes(bytes: Uint8Array): void {
  const length = bytes.length;
  if (pos + length > capacity) grow(length);
  if (length < 48) for (let i = 0; i < length; i++) out[pos + i] = bytes[i] as number;
  else out.set(bytes, pos);
  pos += length;
}

function putU32(value: number): void {
  out[pos] = value >>> 24;
  out[pos + 1] = value >>> 16;
  out[pos + 2] = value >>> 8;
  out[pos + 3] = value;
  pos += 4;
}

function putText(text: string): void {
  const length = text.length;
  if (pos + 5 + length * 3 > capacity) grow(5 + length * 3);
  const start = pos + 5;
  out[pos] = Tag.binary;
  if (length <= 40) {
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) break;
      out[start + i] = code;
    }
    if (i === length) {
      out[pos + 1] = 0;
      out[pos + 2] = 0;
      out[pos + 3] = 0;
      out[pos + 4] = length;
      pos = start + length;
      return;
    }
  }
  const written = out.utf8Write(text, start);
  pos += 1;
  putU32(written);
  pos += written;
}

function putNumber(value: number): void {
  if ((value | 0) === value) {
    if (pos + 5 > capacity) grow(5);
    if (value >= 0 && value < 256) {
      out[pos] = Tag.smallInteger;
      out[pos + 1] = value;
      pos += 2;
    } else {
      out[pos++] = Tag.integer;
      putU32(value);
    }
  } else if (Number.isSafeInteger(value)) {
    putSafeInteger(value);
  } else if (Number.isInteger(value)) {
    putBigint(BigInt(value));
  } else {
    putFloat(value);
  }
}

function putSafeInteger(value: number): void {
  need(10);
  let rest = Math.abs(value);
  const start = pos;
  out[start] = Tag.smallBig;
  out[start + 2] = value < 0 ? 1 : 0;
  pos += 3;
  while (rest > 0) {
    const high = Math.floor(rest / 256);
    out[pos++] = rest - high * 256;
    rest = high;
  }
  out[start + 1] = pos - start - 3;
}

function putBigint(value: bigint): void {
  if (value >= -2147483648n && value <= 2147483647n) {
    putNumber(Number(value));
    return;
  }
  const bytes = bigBytes(value);
  const length = bytes.length;
  if (length > MAX_BIG_BYTES) throw notEncodable(`an integer of ${length} bytes is longer than ${MAX_BIG_BYTES} bytes`);
  need(6 + length);
  if (length < 256) {
    out[pos] = Tag.smallBig;
    out[pos + 1] = length;
    pos += 2;
  } else {
    out[pos++] = Tag.largeBig;
    putU32(length);
  }
  out[pos++] = value < 0n ? 1 : 0;
  putBytes(bytes);
}

function putFloat(value: number): void {
  if (!Number.isFinite(value)) throw notEncodable(`${value} has no form in the external term format`);
  need(9);
  floats[0] = value;
  out[pos] = Tag.newFloat;
  for (let i = 0; i < 8; i++) out[pos + 1 + i] = floatBytes[7 - i] as number;
  pos += 9;
}

function nested(depth: number): number {
  if (depth >= MAX_DEPTH) throw notEncodable(`the term is nested deeper than ${MAX_DEPTH}`);
  return depth + 1;
}

function putList(list: readonly Term[], depth: number): void {
  const length = list.length;
  if (pos + 6 > capacity) grow(6);
  if (length > 0) {
    const inner = nested(depth);
    out[pos++] = Tag.list;
    putU32(length);
    for (let i = 0; i < length; i++) put(list[i], inner);
    need(1);
  }
  out[pos++] = Tag.nil;
}

function putObject(term: object, depth: number): void {
  // The prototype distinguishes plain objects from ours, and a map key called "constructor" cannot mislead it.
  switch (Object.getPrototypeOf(term)) {
    case Atom.prototype:
      putBytes((term as Atom).wire);
      return;
    case Tuple.prototype:
      putTuple(term as Tuple, depth);
      return;
    case Pid.prototype:
      putBytes((term as Pid).wire);
      return;
    case Ref.prototype:
      putBytes((term as Ref).wire);
      return;
    case Map.prototype:
      putMap(term as ReadonlyMap<Term, Term>, depth);
      return;
    default:
      if (isRecord(term)) putRecord(term, depth);
      else putRare(term, depth);
  }
}

function putTuple(term: Tuple, depth: number): void {
  const elements = term.elements;
  const length = elements.length;
  const inner = nested(depth);
  if (pos + 5 > capacity) grow(5);
  if (length < 256) {
    out[pos] = Tag.smallTuple;
    out[pos + 1] = length;
    pos += 2;
  } else {
    out[pos++] = Tag.largeTuple;
    putU32(length);
  }
  for (let i = 0; i < length; i++) put(elements[i], inner);
}

function putRecord(term: { readonly [key: string]: Term }, depth: number): void {
  const inner = nested(depth);
  if (pos + 5 > capacity) grow(5);
  const start = pos;
  pos += 5;
  let count = 0;
  for (const key in term) {
    take();
    putText(key);
    put(term[key], inner);
    count++;
  }
  out[start] = Tag.map;
  out[start + 1] = count >>> 24;
  out[start + 2] = count >>> 16;
  out[start + 3] = count >>> 8;
  out[start + 4] = count;
}

function putMap(term: ReadonlyMap<Term, Term>, depth: number): void {
  const inner = nested(depth);
  need(5);
  out[pos++] = Tag.map;
  putU32(term.size);
  for (const [key, value] of term) {
    put(key, inner);
    put(value, inner);
  }
}

function putRare(term: object, depth: number): void {
  if (term instanceof Uint8Array) putBinary(term);
  else if (term instanceof Float) putFloat(term.value);
  else if (term instanceof Port) putPort(term);
  else if (term instanceof ImproperList) putImproper(term, depth);
  else if (term instanceof BitString) putBits(term);
  else if (term instanceof ExportFun) {
    need(1);
    out[pos++] = Tag.export;
    putBytes(term.module.wire);
    putBytes(term.fun.wire);
    putNumber(term.arity);
  } else if (term instanceof OpaqueFun || term instanceof Opaque) putBytes(term.bytes);
  else throw notEncodable(`a ${term.constructor?.name ?? 'foreign object'} has no form in the external term format`);
}

function putBinary(bytes: Uint8Array): void {
  need(5 + bytes.length);
  out[pos++] = Tag.binary;
  putU32(bytes.length);
  out.set(bytes, pos);
  pos += bytes.length;
}

function putBits(term: BitString): void {
  if (term.bits < 1 || term.bits > 7 || term.bytes.length === 0) {
    throw notEncodable(`a bit string of ${term.bytes.length} bytes with ${term.bits} bits in the last one`);
  }
  need(6 + term.bytes.length);
  out[pos++] = Tag.bitBinary;
  putU32(term.bytes.length);
  out[pos++] = term.bits;
  out.set(term.bytes, pos);
  pos += term.bytes.length;
}

function putImproper(term: ImproperList, depth: number): void {
  const inner = nested(depth);
  if (term.elements.length === 0) throw notEncodable('an improper list needs at least one element before its tail');
  need(5);
  out[pos++] = Tag.list;
  putU32(term.elements.length);
  for (const element of term.elements) put(element, inner);
  put(term.tail, inner);
}

function putPort(term: Port): void {
  need(1);
  out[pos++] = Tag.v4Port;
  putBytes(atom(term.node).wire);
  need(12);
  putU32(Number(term.id >> 32n));
  putU32(Number(term.id & 0xffffffffn));
  putU32(term.creation);
}
