import { describe, expect, test } from '@jest/globals';
import {
  asBytes,
  atom,
  atomMap,
  BitString,
  decode,
  encode,
  ExportFun,
  Float,
  ImproperList,
  mapGet,
  Opaque,
  OpaqueFun,
  Pid,
  Port,
  Ref,
  type Term,
  TermReader,
  TermWriter,
  tuple,
} from './index.js';

const hex = (term: Term): string => encode(term).toString('hex');
const from = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

// Each line: description, value, bytes (External Term Format, erts user's guide).
const VECTORS: [string, Term, string][] = [
  ['a small integer', 7, '8361 07'],
  ['the largest small integer', 255, '8361 ff'],
  ['an integer above a byte', 256, '8362 00000100'],
  ['a negative integer', -1, '8362 ffffffff'],
  ['the least 32-bit integer', -2147483648, '8362 80000000'],
  ['an integer above 32 bits', 1099511627776, '836e 06 00 000000000001'],
  ['a negative integer below 32 bits', -2147483649, '836e 04 01 01000080'],
  ['2^70', 2n ** 70n, '836e 09 00 000000000000000040'],
  ['a float', 1.5, '8346 3ff8000000000000'],
  ['a float with an integer value', new Float(2), '8346 4000000000000000'],
  ['an atom', atom('ok'), '8377 02 6f6b'],
  ['an atom beyond ASCII', atom('é'), '8377 02 c3a9'],
  ['true', true, '8377 04 74727565'],
  ['null as nil', null, '8377 03 6e696c'],
  ['undefined', undefined, '8377 09 756e646566696e6564'],
  ['a tuple', tuple(1, 2), '8368 02 6101 6102'],
  ['an empty tuple', tuple(), '8368 00'],
  ['an empty list', [], '836a'],
  ['a list', [1, 2], '836c 00000002 6101 6102 6a'],
  ['an improper list', new ImproperList([1], 2), '836c 00000001 6101 6102'],
  ['text', 'str', '836d 00000003 737472'],
  ['text beyond ASCII', 'zażółć', '836d 0000000a 7a61c5bcc3b3c582c487'],
  ['bytes', from('00ff80'), '836d 00000003 00ff80'],
  ['a bit string', new BitString(from('a0'), 3), '834d 00000001 03 a0'],
  ['a map with text keys', { a: 1 }, '8374 00000001 6d0000000161 6101'],
  ['a map with atom keys', atomMap({ a: 1 }), '8374 00000001 770161 6101'],
  ['a pid', new Pid('n@h', 1, 2, 3), '8358 77036e4068 00000001 00000002 00000003'],
  ['a reference', new Ref('n@h', 3, [1, 2, 4]), '835a 0003 77036e4068 00000003 00000001 00000002 00000004'],
  ['a port', new Port('n@h', 5n, 3), '8378 77036e4068 0000000000000005 00000003'],
  ['an external fun', new ExportFun(atom('m'), atom('f'), 2), '8371 77016d 770166 6102'],
];

describe('encoding', () => {
  test.each(VECTORS)('writes %s', (_, term, bytes) => {
    expect(hex(term)).toBe(from(bytes).toString('hex'));
  });

  test.each(VECTORS)('reads %s back', (_, term, bytes) => {
    expect(decode(from(bytes), { floats: term instanceof Float ? 'wrap' : 'number' })).toEqual(term);
  });

  test('writes integers of up to 4,096 bytes and refuses longer ones', () => {
    const big = 2n ** 32_767n;
    expect(hex(big).slice(0, 12)).toBe('836f00001000');
    expect(decode(encode(big))).toBe(big);
    expect(decode(encode(-big))).toBe(-big);
    expect(() => encode(2n ** 32_768n)).toThrow(expect.objectContaining({ code: 'NOT_ENCODABLE' }));
  });

  test('writes a bigint that fits as a plain integer', () => {
    expect(hex(5n)).toBe(hex(5));
    expect(hex(2n ** 40n)).toBe(hex(2 ** 40));
  });

  test('writes integer-valued numbers beyond 2^53 as integers', () => {
    expect(decode(encode(2 ** 60))).toBe(2n ** 60n);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('refuses %p and leaves nothing behind', (value) => {
    const writer = new TermWriter(16);
    writer.term(1);
    expect(() => writer.term([1, 'x'.repeat(100), value])).toThrow(expect.objectContaining({ code: 'NOT_ENCODABLE' }));
    writer.term(2);
    expect(writer.view().toString('hex')).toBe('836101836102');
  });

  test.each<[string, unknown]>([
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['a date', new Date(0)],
    ['an improper list without elements', new ImproperList([], 1)],
    ['a bit string of 9 bits in a byte', new BitString(from('ff'), 9)],
    ['a reference of six words', new Ref('n@h', 1, [1, 2, 3, 4, 5, 6])],
  ])('refuses %s', (_, value) => {
    expect(() => encode(value as Term)).toThrow(expect.objectContaining({ code: 'NOT_ENCODABLE' }));
  });

  test('refuses a value that contains itself', () => {
    const loop: Term[] = [];
    loop.push(loop);
    expect(() => encode(loop)).toThrow('nested deeper than 512');
  });

  test.each<[string, (size: number) => Term]>([
    ['lists', (size) => Array.from({ length: size / 2_000 }, () => Array.from({ length: 1_999 }, () => 0))],
    [
      'maps',
      (size) =>
        Array.from({ length: size / 2_001 }, () => Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [i, 0]))),
    ],
  ])('refuses %s with more terms than a decoder accepts, and nothing smaller', (_, termOf) => {
    const largest = encode(termOf(3_990_000));
    expect(() => decode(largest)).not.toThrow();
    expect(() => encode(termOf(4_010_000))).toThrow(expect.objectContaining({ code: 'NOT_ENCODABLE' }));
    expect(decode(encode([1]))).toEqual([1]);
  });

  test('refuses an atom of 256 characters', () => {
    expect(() => atom('a'.repeat(256))).toThrow(expect.objectContaining({ code: 'NOT_ENCODABLE' }));
    expect(decode(encode(atom('é'.repeat(255))))).toEqual(atom('é'.repeat(255)));
  });

  test('grows its buffer for long lists and long text', () => {
    const term = [Array.from({ length: 70_000 }, (_, i) => i), 'ü'.repeat(100_000), { a: 'x'.repeat(50) }];
    expect(decode(encode(term))).toEqual(term);
  });

  test('never exceeds the given size', () => {
    const writer = new TermWriter(64, 1_000);
    expect(() => writer.term(Buffer.alloc(10_000))).toThrow('larger than 1000 bytes');
  });

  test('stays correct when a getter encodes something else', () => {
    const nosy = {
      get size() {
        return encode({ inner: [1, 2, 3] }).length;
      },
    };
    expect(decode(encode([nosy, 'after']))).toEqual([{ size: 28 }, 'after']);
  });
});

describe('pass-through', () => {
  test('sends an opaque term on byte for byte', () => {
    // {[alias|Ref], 2.0}: an improper list and a float that would become the integer 2.
    const sent = from('83 68 02 6c 00000001 7705616c696173 5a0001 77036e4068 00000001 00000007 46 4000000000000000');
    const reader = new TermReader().open(sent);
    reader.version();
    const opaque = reader.opaque();
    expect(opaque.term).toEqual(tuple(new ImproperList([atom('alias')], new Ref('n@h', 1, [7])), new Float(2)));
    expect(encode(opaque)).toEqual(sent);
  });

  test('keeps funs as bytes', () => {
    const fun = from('70 0000000c 01 0203040506 0708');
    const term = decode(Buffer.concat([from('83'), fun]));
    expect(term).toEqual(new OpaqueFun(new Uint8Array(fun)));
    expect(encode(term).subarray(1)).toEqual(fun);
  });

  test('keeps the meaning of an opaque term', () => {
    expect(decode(encode([new Opaque(encode('x').subarray(1), 'x')]))).toEqual(['x']);
  });
});

describe('accessors for decoded terms', () => {
  test('finds text and atom keys in either form with mapGet', () => {
    expect(mapGet({ a: 1 }, 'a')).toBe(1);
    expect(mapGet(decode(encode({ a: 1 }), { maps: 'map' }), 'a')).toBe(1);
    expect(mapGet(atomMap({ node: 2 }), atom('node'))).toBe(2);
    expect(mapGet(atomMap({ node: 2 }), 'node')).toBeUndefined();
    expect(mapGet({ a: 1 }, 'toString')).toBeUndefined();
    expect(mapGet(5, 'a')).toBeUndefined();
  });

  test('returns the bytes of a binary that became text with asBytes', () => {
    expect(asBytes('é')).toEqual(from('c3a9'));
    expect(asBytes(new Uint8Array([1, 2]))).toEqual(from('0102'));
    expect(asBytes(5)).toBeUndefined();
  });
});
