import { inflateSync } from 'node:zlib';
import { EtfError, malformedTerm, termLimitExceeded } from './errors.js';
import { type DecodeOptions, type DecodeRules, MAX_TERMS, rulesOf } from './limits.js';
import { EMPTY, type Input, parse } from './parse.js';
import { Opaque, type Term } from './terms.js';
import type { RawBuffer } from './writer.js';
import { Tag, VERSION } from './tags.js';

/**
 * Reads consecutive terms from a range of bytes. Counts are checked against the remaining bytes before anything is
 * allocated for them. Every method throws EtfError MALFORMED_TERM or TERM_LIMIT_EXCEEDED and nothing else.
 */
export class TermReader {
  readonly #rules: DecodeRules;
  readonly #input: Input = { bytes: EMPTY, at: 0, until: 0, termsLeft: 0 };

  constructor(options: DecodeOptions = {}) {
    this.#rules = rulesOf(options);
  }

  /** Sets the reader to `bytes[start, end)` and resets its count of terms. */
  open(bytes: Uint8Array, start = 0, end = bytes.length): this {
    this.#input.bytes = rawBuffer(bytes);
    this.#input.at = start;
    this.#input.until = end;
    this.#input.termsLeft = MAX_TERMS;
    return this;
  }

  get position(): number {
    return this.#input.at;
  }

  get remaining(): number {
    return this.#input.until - this.#input.at;
  }

  /** Returns the next byte without consuming it; -1 at the end. */
  peek(): number {
    return this.#input.at < this.#input.until ? (this.#input.bytes[this.#input.at] as number) : -1;
  }

  /** Reads the version byte (131). */
  version(): void {
    if (this.peek() !== VERSION)
      throw malformedTerm(`version byte ${this.peek()} instead of ${VERSION}`, this.#input.at);
    this.#input.at += 1;
  }

  /** Reads a term with its version byte. */
  term(): Term {
    this.version();
    return this.part();
  }

  /** Reads a term without a version byte. */
  part(): Term {
    return parse(this.#input, this.#rules, false);
  }

  /** Reads a term without a version byte and keeps its bytes to send them on unchanged. Its floats are wrapped. */
  opaque(): Opaque {
    const start = this.#input.at;
    const term = parse(this.#input, this.#rules, true);
    return new Opaque(Uint8Array.prototype.slice.call(this.#input.bytes, start, this.#input.at), term);
  }

  /** Reads the header of a tuple and returns the arity; undefined when the next term is not a tuple. */
  tupleHeader(): number | undefined {
    if (this.peek() === Tag.smallTuple && this.remaining >= 2) {
      this.#input.at += 2;
      return this.#input.bytes[this.#input.at - 1];
    }
    return undefined;
  }

  /** Consumes the next term if it has exactly these bytes, such as the `wire` of an atom. */
  skip(wire: Uint8Array): boolean {
    if (this.remaining < wire.length) return false;
    for (let i = 0; i < wire.length; i++) if (this.#input.bytes[this.#input.at + i] !== wire[i]) return false;
    this.#input.at += wire.length;
    return true;
  }

  /** Returns to an earlier `position`. */
  rewind(position: number): void {
    this.#input.at = position;
  }

  /** Releases the input. */
  close(): void {
    this.#input.bytes = EMPTY;
    this.#input.at = 0;
    this.#input.until = 0;
  }
}

const plain = new TermReader();

/**
 * Returns the single term in `bytes`, which start with the version byte 131.
 * @throws EtfError MALFORMED_TERM, also for leftover bytes; TERM_LIMIT_EXCEEDED
 */
export function decode(bytes: Uint8Array, options?: DecodeOptions): Term {
  const reader = options === undefined ? plain : new TermReader(options);
  try {
    reader.open(bytes).version();
    if (reader.peek() === 80) return decodeCompressed(bytes, options ?? {});
    const term = reader.part();
    if (reader.remaining > 0) throw malformedTerm(`${reader.remaining} bytes after the term`, reader.position);
    return term;
  } finally {
    reader.close();
  }
}

function decodeCompressed(bytes: Uint8Array, options: DecodeOptions): Term {
  const allowed = options.maxInflatedBytes ?? 0;
  if (allowed === 0) throw malformedTerm('a compressed term', 1);
  if (bytes.length < 6) throw malformedTerm('compressed term without size', 1);
  const size = rawBuffer(bytes).readUInt32BE(2);
  if (size > allowed) throw termLimitExceeded('inflated bytes', allowed, 1);
  let inflated: Buffer;
  try {
    inflated = inflateSync(bytes.subarray(6), { maxOutputLength: Math.max(size, 1) });
  } catch {
    throw malformedTerm('compressed term that does not inflate', 6);
  }
  if (inflated.length !== size) throw malformedTerm(`${inflated.length} inflated bytes instead of ${size}`, 2);
  const reader = new TermReader(options).open(inflated);
  const term = reader.part();
  if (reader.remaining > 0) throw malformedTerm(`${reader.remaining} bytes after the term`, reader.position);
  return term;
}

function rawBuffer(bytes: Uint8Array): RawBuffer {
  return (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as RawBuffer;
}

/** Returns whether an error is the input's fault rather than ours. */
export function isDecodeError(error: unknown): error is EtfError {
  return error instanceof EtfError && error.code !== 'NOT_ENCODABLE';
}
