import { codePoint } from '@bloom/time/testing';
import fc from 'fast-check';
import {
  atom,
  BitString,
  ExportFun,
  Float,
  ImproperList,
  Pid,
  Port,
  Ref,
  sameTerm,
  type Term,
  Tuple,
} from '../index.js';

// Random terms for tests. Floats are wrapped so that integer-valued ones survive the comparison.

const u32 = fc.nat(0xffffffff);
const name = fc.oneof(
  fc.constantFrom('ok', 'error', 'true', 'nil', 'a@b', ''),
  fc.string({ maxLength: 20, unit: 'grapheme' }).filter((text) => Array.from(text).length <= 255),
);
const node = fc.constantFrom('n@h', 'node-1@127.0.0.1', 'żółw@host');

const leaf: fc.Arbitrary<Term> = fc.oneof(
  fc.integer(),
  fc.integer({ min: 0, max: 255 }),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 300n), max: 2n ** 300n }),
  fc.bigInt({ min: -(2n ** 2_100n), max: 2n ** 2_100n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => new Float(value)),
  fc.string({ unit: codePoint(fc), maxLength: 80 }),
  fc.string({ maxLength: 12 }),
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom<Term>(true, false, null, undefined),
  name.map((text) => atom(text)),
  fc.tuple(node, u32, u32, u32).map(([n, id, serial, creation]) => new Pid(n, id, serial, creation)),
  fc
    .tuple(node, u32, fc.array(u32, { minLength: 1, maxLength: 5 }))
    .map(([n, creation, words]) => new Ref(n, creation, words)),
  fc
    .tuple(node, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), u32)
    .map(([n, id, creation]) => new Port(n, id, creation)),
  fc.tuple(name, name, fc.nat(255)).map(([m, f, arity]) => new ExportFun(atom(m), atom(f), arity)),
  fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 7 }))
    .map(([bytes, bits]) => new BitString(cleared(bytes, bits), bits)),
);

function cleared(bytes: Uint8Array, bits: number): Uint8Array {
  const last = bytes.length - 1;
  bytes[last] = (bytes[last] as number) & (0xff << (8 - bits));
  return bytes;
}

const isList = (term: Term): boolean => Array.isArray(term) || term instanceof ImproperList;

/** Any term of a few levels. */
export const anyTerm: fc.Arbitrary<Term> = fc.letrec<{ term: Term }>((tie) => ({
  term: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('term'), { maxLength: 6 }),
    fc.array(tie('term'), { maxLength: 6 }).map((elements) => new Tuple(elements)),
    fc.dictionary(fc.string({ maxLength: 6 }), tie('term'), { maxKeys: 6 }),
    fc
      .uniqueArray(fc.tuple(tie('term'), tie('term')), { maxLength: 5, comparator: (a, b) => sameTerm(a[0], b[0]) })
      .map((entries) => new Map(entries)),
    fc
      .tuple(fc.array(tie('term'), { minLength: 1, maxLength: 4 }), tie('term'))
      .filter(([, tail]) => !isList(tail))
      .map(([elements, tail]) => new ImproperList(elements, tail)),
  ),
})).term;
