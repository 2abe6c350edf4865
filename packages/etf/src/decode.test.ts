import { deflateSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { internedAtomCount, MAX_INTERNED_ATOMS } from './atoms.js';
import { structuralKey } from './compare.js';
import {
  Atom,
  atom,
  BitString,
  decode,
  encode,
  Float,
  ImproperList,
  isDecodeError,
  Opaque,
  Pid,
  Port,
  Ref,
  sameTerm,
  type Term,
  TermReader,
  Tuple,
  tuple,
} from './index.js';
import { MAX_TERMS } from './limits.js';
import { anyTerm } from './testing/terms.js';

const NIGHTLY = process.env['BLOOM_NIGHTLY'] !== undefined;
const RUNS = fuzzRuns(NIGHTLY ? 1_000_000 : 2_500);

const from = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('decoding the older forms', () => {
  test.each<[string, string, Term]>([
    ['an atom in Latin-1 with long length', '8364 0002 6f6b', atom('ok')],
    ['an atom in Latin-1 with short length', '8373 01 e9', atom('é')],
    ['true in Latin-1', '8364 0004 74727565', true],
    ['a list of bytes', '836b 0003 010203', [1, 2, 3]],
    ['an empty list of bytes', '836b 0000', []],
    ['a pid with short creation', '8367 64 0003 6e4068 00000001 00000002 03', new Pid('n@h', 1, 2, 3)],
    ['a reference with short creation', '8372 0001 64 0003 6e4068 03 00000007', new Ref('n@h', 3, [7])],
    ['a reference of one word', '8365 64 0003 6e4068 00000007 03', new Ref('n@h', 3, [7])],
    [
      'a reference of five words',
      `835a 0005 77036e4068 00000003 ${'00000009'.repeat(5)}`,
      new Ref('n@h', 3, [9, 9, 9, 9, 9]),
    ],
    ['a port with short creation', '8366 77036e4068 00000007 03', new Port('n@h', 7n, 3)],
    ['a port with 32-bit id', '8359 77036e4068 00000007 00000003', new Port('n@h', 7n, 3)],
    ['a float as text', `8363 ${Buffer.from('1.50000000000000000000e+00').toString('hex').padEnd(62, '0')}`, 1.5],
    ['a nested proper tail', '836c 00000001 6101 6c 00000001 6102 6a', [1, 2]],
    ['a bit string of whole bytes', '834d 00000001 08 a0', from('a0')],
    ['a large tuple', '8369 00000001 6101', tuple(1)],
    ['a long integer that is small', '836f 00000001 01 05', -5],
  ])('reads %s', (_, bytes, term) => {
    expect(decode(from(bytes))).toEqual(term);
  });
});

describe('decoding maps', () => {
  test('creates objects that inherit nothing', () => {
    const term = decode(
      encode(
        new Map([
          ['constructor', 1],
          ['toString', 2],
        ]),
      ),
    ) as Record<string, unknown>;
    expect(term['constructor']).toBe(1);
    expect('hasOwnProperty' in term).toBe(false);
    expect(Object.keys(term)).toEqual(['constructor', 'toString']);
  });

  test('keeps a key called __proto__ out of objects', () => {
    const sent = new Map<Term, Term>([
      ['__proto__', { polluted: true }],
      ['a', 1],
    ]);
    expect(decode(encode(sent))).toEqual(sent);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('reads the same keys repeatedly, in another order, and with one changed', () => {
    const rows: Term[] = [];
    for (let i = 0; i < 40; i++) {
      rows.push({ id: i, name: `n${i}`, on: true });
      rows.push({ name: `n${i}`, id: i, on: false });
      rows.push({ id: i, name: `n${i}`, off: true });
      rows.push({ id: i, nume: 'x', on: i });
      rows.push({ id: i, 7: 'number-like', on: null });
    }
    expect(decode(encode(rows))).toEqual(rows);
    expect(decode(encode(rows))).toEqual(rows);
  });

  test('returns a Map on request, or when a key is not text', () => {
    expect(decode(encode({ a: 1 }), { maps: 'map' })).toEqual(new Map([['a', 1]]));
    expect(decode(encode({ a: 1 }), { text: 'none' })).toEqual(new Map([[Buffer.from('a'), 1]]));
    expect(decode(encode({ a: 'x' }), { text: 'keys' })).toEqual({ a: Buffer.from('x') });
    const mixed = new Map<Term, Term>([
      ['a', 1],
      [atom('a'), 2],
      [from('ff'), 3],
    ]);
    expect(decode(encode(mixed))).toEqual(mixed);
  });

  test('distinguishes the keys 1 and 1.0', () => {
    const term = decode(
      encode(
        new Map<Term, Term>([
          [1, 'a'],
          [new Float(1), 'b'],
          [tuple(1), 'c'],
          [tuple(new Float(1)), 'd'],
        ]),
      ),
    );
    expect([...(term as Map<Term, Term>).values()]).toEqual(['a', 'b', 'c', 'd']);
  });

  test.each([
    ['text', '8374 00000002 6d0000000161 6101 6d0000000161 6102'],
    ['atoms', '8374 00000002 770161 6101 770161 6102'],
    ['atoms in two forms', '8374 00000002 770161 6101 64000161 6102'],
    ['tuples', '8374 00000002 68016101 6101 68016101 6102'],
    ['bytes', '8374 00000002 6d00000001ff 6101 6d00000001ff 6102'],
  ])('refuses a duplicate key (%s)', (_, bytes) => {
    expect(() => decode(from(bytes))).toThrow('the same key twice');
  });

  test('refuses a duplicate key in a known shape', () => {
    for (let i = 0; i < 3; i++) decode(encode({ aa: 1, bb: 2 }));
    expect(() => decode(from('8374 00000002 6d000000026161 6101 6d000000026161 6102'))).toThrow('the same key twice');
  });
});

describe('limits and garbage', () => {
  test.each([
    ['nothing', ''],
    ['no version byte', '6101'],
    ['bytes left over', '83610161'],
    ['a tuple of more than there is', '8369 ffffffff 6101'],
    ['a list of more than there is', '836c ffffffff 6101 6a'],
    ['a map of more than there is', '8374 7fffffff 6101 6101'],
    ['a binary of more than there is', '836d ffffffff 00'],
    ['NaN', '8346 7ff8000000000000'],
    ['infinity as text', `8363 ${Buffer.from('inf').toString('hex').padEnd(62, '0')}`],
    ['an atom cache reference', '8352 00'],
    ['the local format', '8379 00'],
    ['a compressed term', '8350 00000002 00'],
    ['a distribution header', '8344 00'],
    ['an atom that is not UTF-8', '8377 01 ff'],
    ['a reference without words', '835a 0000 770161 00000001'],
    ['a pid whose node is no atom', '8358 6101 00000001 00000001 00000001'],
    ['a bit string with nine bits in a byte', '834d 00000001 09 00'],
    ['a fun shorter than its own size field', '8370 00000003 00'],
  ])('refuses %s', (_, bytes) => {
    expect(() => decode(from(bytes))).toThrow(expect.objectContaining({ code: 'MALFORMED_TERM' }));
  });

  test('stops at 512 levels, whatever the depth of the input', () => {
    const deep = (levels: number) => Buffer.concat([from('83'), Buffer.alloc(levels * 2, from('6801')), from('6a')]);
    expect(() => decode(deep(512))).not.toThrow();
    expect(() => decode(deep(513))).toThrow(expect.objectContaining({ code: 'TERM_LIMIT_EXCEEDED' }));
    expect(() => decode(deep(1_000_000))).toThrow(expect.objectContaining({ code: 'TERM_LIMIT_EXCEEDED' }));
    const lists = Buffer.concat([from('83'), Buffer.alloc(500_000, from('6c00000001')), from('6a')]);
    expect(() => decode(lists)).toThrow(expect.objectContaining({ code: 'TERM_LIMIT_EXCEEDED' }));
  });

  test('reads any number of nested tails in one pass', () => {
    const levels = 20_000;
    const nested = Buffer.concat([from('83'), Buffer.alloc(7 * levels, from('6c00000001 6107')), from('6a')]);
    expect(decode(nested)).toEqual(Array.from({ length: levels }, () => 7));
    const improper = Buffer.concat([nested.subarray(0, -1), from('6108')]);
    expect(decode(improper)).toEqual(
      new ImproperList(
        Array.from({ length: levels }, () => 7),
        8,
      ),
    );
    const bytes = Buffer.concat([nested.subarray(0, -1), from('6b 0002 0809')]);
    expect((decode(bytes) as Term[]).slice(-3)).toEqual([7, 8, 9]);
  });

  test('counts nested tails and their elements as terms', () => {
    const tails = (levels: number, level: string): Buffer =>
      Buffer.concat([from('83'), Buffer.alloc((level.length / 2) * levels, from(level)), from('6a')]);
    expect(decode(tails(MAX_TERMS - 1, '6c00000000'))).toEqual([]);
    expect(() => decode(tails(MAX_TERMS, '6c00000000'))).toThrow('limit of 4000000 terms');
    expect(() => decode(tails(MAX_TERMS / 2, '6c000000016107'))).toThrow('limit of 4000000 terms');
  });

  test('counts the elements of byte lists as terms', () => {
    const list = (length: number): Buffer =>
      Buffer.concat([from(`6b ${length.toString(16).padStart(4, '0')}`), Buffer.alloc(length)]);
    const full = list(0xffff);
    // The tuple, 61 full lists and the last list.
    const rest = MAX_TERMS - 1 - 61 * 0x10000 - 1;
    const lists = (last: number): Buffer => Buffer.concat([from('83 68 3e'), ...Array(61).fill(full), list(last)]);
    expect(decode(lists(rest))).toBeInstanceOf(Tuple);
    expect(() => decode(lists(rest + 1))).toThrow('limit of 4000000 terms');
  });

  test('refuses maps with deeply nested maps as keys', () => {
    const keys = (levels: number): Buffer =>
      Buffer.concat([
        from('83'),
        Buffer.alloc(5 * levels, from('7400000001')),
        from('6101'),
        Buffer.alloc(2 * levels, from('6102')),
      ]);
    expect(decode(keys(8))).toBeInstanceOf(Map);
    expect(() => decode(keys(9))).toThrow('limit of 8 levels of map keys');
  });

  test('counts terms before it allocates memory for them', () => {
    const list = (length: number): Buffer =>
      Buffer.concat([from(`83 6c ${length.toString(16).padStart(8, '0')}`), Buffer.alloc(length + 1, 0x6a)]);
    expect(decode(list(MAX_TERMS - 2))).toHaveLength(MAX_TERMS - 2);
    expect(() => decode(list(MAX_TERMS))).toThrow('the term at byte 6 exceeds the limit of 4000000 terms');
  });

  test.each([
    ['lists', '6c'],
    ['tuples', '69'],
  ])('refuses nested %s that count the same bytes as theirs', (_, tag) => {
    const level = (length: number): Buffer => from(`${tag} ${length.toString(16).padStart(8, '0')}`);
    const nested = (outer: number, inner: number, bytes = 2_001): Buffer =>
      Buffer.concat([from('83'), level(outer), level(inner), Buffer.alloc(bytes, 0x6a)]);
    // 2,001 bytes hold the other 1,000 elements of the outer one and at most 1,001 of the inner one.
    expect(() => decode(nested(1_001, 1_002))).toThrow('a count of 1002 with 1001 bytes left at byte 11');
    expect(() => decode(nested(2_500_000, 2_000_000, 4_600_000))).toThrow(
      'the term at byte 11 exceeds the limit of 4000000 terms',
    );
    expect(
      decode(Buffer.concat([from('83'), level(2), level(2), from('6a6a'), from(tag === '6c' ? '6a6a6a' : '6a')])),
    ).toEqual(tag === '6c' ? [[[], []], []] : tuple(tuple([], []), []));
  });

  test.each([
    ['an integer of 4,097 bytes', Buffer.concat([from('83 6f 00001001 00'), Buffer.alloc(4_097, 1)])],
    ['an atom of 256 characters', Buffer.concat([from('83 76 0100'), Buffer.alloc(256, 'a')])],
    ['a reference of six words', Buffer.concat([from('83 5a 0006 770161 00000001'), Buffer.alloc(24, 1)])],
  ])('refuses %s', (_, bytes) => {
    expect(() => decode(bytes)).toThrow(expect.objectContaining({ code: 'TERM_LIMIT_EXCEEDED' }));
  });

  test('inflates only when allowed, and only up to the limit', () => {
    const inner = encode('x'.repeat(1_000)).subarray(1);
    const sent = Buffer.concat([from('8350'), from(inner.length.toString(16).padStart(8, '0')), deflateSync(inner)]);
    expect(decode(sent, { maxInflatedBytes: 2_000 })).toBe('x'.repeat(1_000));
    expect(() => decode(sent, { maxInflatedBytes: 500 })).toThrow(
      expect.objectContaining({ code: 'TERM_LIMIT_EXCEEDED' }),
    );
    const lying = Buffer.concat([from('8350 00000010'), deflateSync(Buffer.alloc(100_000))]);
    expect(() => decode(lying, { maxInflatedBytes: 2_000 })).toThrow(
      expect.objectContaining({ code: 'MALFORMED_TERM' }),
    );
  });

  test('copies small binaries out of large input', () => {
    const sent = encode([from('ff01'), Buffer.alloc(100_000, 0xff)]);
    const [small, large] = decode(sent) as [Buffer, Buffer];
    expect(small.buffer).not.toBe(sent.buffer);
    expect(large.buffer).toBe(sent.buffer);
  });

  test('shares a limited number of atoms and still reads more', () => {
    for (let i = 0; i < MAX_INTERNED_ATOMS + 500; i++) decode(encode(new Atom(`flood_${i}`)));
    expect(internedAtomCount()).toBe(MAX_INTERNED_ATOMS);
    const late = decode(encode(new Atom('too_late')));
    expect(late).toEqual(new Atom('too_late'));
    const twice = Buffer.concat([
      from('8374 00000002'),
      encode(late).subarray(1),
      from('6101'),
      encode(late).subarray(1),
      from('6102'),
    ]);
    expect(() => decode(twice)).toThrow('the same key twice');
    expect(decode(encode(new Map([[late, 5]])))).toEqual(new Map([[late, 5]]));
  });

  test('decodes random bytes to a term or a documented error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => {
        attempt(Buffer.concat([from('83'), bytes]));
      }),
      { numRuns: RUNS },
    );
  });

  test('decodes encoded terms with some bytes changed to a term or a documented error', () => {
    fc.assert(
      fc.property(
        anyTerm,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(),
        (term, edits, cut) => {
          const bytes = encode(term);
          for (const [at, value] of edits) bytes[1 + (at % Math.max(1, bytes.length - 1))] = value;
          attempt(cut % 3 === 0 ? bytes.subarray(0, cut % bytes.length) : bytes);
        },
      ),
      { numRuns: RUNS },
    );
  }, 900_000);
});

function attempt(bytes: Buffer): void {
  try {
    // An accepted term can be sent on and keeps its meaning.
    const term = decode(bytes, { floats: 'wrap' });
    expect(structuralKey(decode(encode(term), { floats: 'wrap' }))).toBe(structuralKey(term));
  } catch (error) {
    if (!isDecodeError(error)) throw error;
  }
}

describe('round trips', () => {
  test('returns every term unchanged from a round trip', () => {
    fc.assert(
      fc.property(anyTerm, (term) => {
        expect(structuralKey(decode(encode(term), { floats: 'wrap' }))).toBe(structuralKey(term));
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('reads a term alone as it does within a larger range of bytes', () => {
    fc.assert(
      fc.property(anyTerm, anyTerm, (a, b) => {
        const both = Buffer.concat([from('0000'), encode(a), encode(b), from('ffff')]);
        const reader = new TermReader({ floats: 'wrap' }).open(both, 2, both.length - 2);
        expect(sameTerm(reader.term(), a)).toBe(true);
        expect(sameTerm(reader.term(), b)).toBe(true);
        expect(reader.remaining).toBe(0);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test.each([
    ['a binary', '836d 00000005 0102030405'],
    ['a list of bytes', '836b 0005 0102030405'],
    ['an atom', '8377 05 6162636465'],
    ['an integer', '836e 05 00 0102030405'],
  ])('refuses %s that extends into the next term', (_, bytes) => {
    const stretch = from(bytes);
    for (let end = 2; end < stretch.length; end++) {
      expect(() => new TermReader().open(stretch, 0, end).term()).toThrow(/early|left/);
    }
  });

  test('never accepts a part of a term as a term, whatever follows it', () => {
    fc.assert(
      fc.property(anyTerm, fc.nat(), (term, cut) => {
        const bytes = encode(term);
        const end = 1 + (cut % (bytes.length - 1));
        expect(() => new TermReader().open(bytes, 0, end).term()).toThrow();
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('gives different terms different structural keys', () => {
    const all: Term[] = [
      1,
      new Float(1),
      '1',
      [1],
      tuple(1),
      { 1: 1 },
      atom('1'),
      new ImproperList([1], 1),
      'true',
      true,
      null,
    ];
    all.push(
      new BitString(from('80'), 1),
      from('80'),
      new Pid('a@b', 1, 1, 1),
      new Pid('a@b', 1, 1, 2),
      [],
      tuple(),
      {},
      new Map([[1, 1]]),
    );
    expect(new Set(all.map(structuralKey)).size).toBe(all.length);
    expect(sameTerm(from('61'), 'a')).toBe(true);
    expect(
      sameTerm(
        { a: 1, b: 2 },
        new Map<Term, Term>([
          ['b', 2],
          ['a', 1],
        ]),
      ),
    ).toBe(true);
    expect(sameTerm(new Opaque(encode(1).subarray(1), 1), 1)).toBe(true);
  });
});
