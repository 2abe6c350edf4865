import { describe, expect, test } from '@jest/globals';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import { atom, decode, encode, Pid, type Term, tuple } from '@bloom/etf';
import fc from 'fast-check';
import { LocalRef, RemoteRef, type AnyRef } from '../ref.js';
import { PlainData } from './plain-data.js';

const local = new LocalRef('/rooms/kitchen', '/rooms/kitchen#7');
const localPid = new Pid('a@h', 7, 0, 99);
const data = new PlainData({
  pidOf: () => localPid,
  refOf: (pid) => (pid.node === 'a@h' ? local : new RemoteRef(pid.node, pid)),
  named: (node, name) => new RemoteRef(node, name),
});

function travel(value: unknown): unknown {
  return data.toValue(decode(encode(data.toTerm(value))));
}

/** Compares the received value with the sent one, ignoring prototypes: field by field, byte by byte. */
function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (a instanceof Set) return b instanceof Set && same([...a], [...b]);
  if (a instanceof Map) return b instanceof Map && same([...a], [...b]);
  if (a instanceof LocalRef || a instanceof RemoteRef) return a.key === (b as AnyRef).key;
  const keys = Object.keys(a);
  const record = (value: object) => value as { [key: string]: unknown };
  return (
    Object.keys(b).length === keys.length &&
    keys.every((key) => Object.hasOwn(b, key) && same(record(a)[key], record(b)[key]))
  );
}

const key = fc.oneof(
  fc.string({ unit: codePoint(fc) }),
  fc.constantFrom('type', '__proto__', 'constructor', 'toString', '0', '\ud800', '\udfff', '$bytes', ''),
);
const plain = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.string({ unit: codePoint(fc) }), fc.constantFrom('\ud800', 'a\udc00b', '', 'ä€😀', '\0')),
    fc.oneof(fc.integer(), fc.double(), fc.maxSafeInteger(), fc.constantFrom(-0, 2 ** 53, -(2 ** 63), 1e300, 5e-324)),
    fc.oneof(fc.bigInt(), fc.bigInt({ min: -10n, max: 10n })),
    fc.constantFrom(true, false, null),
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom<AnyRef>(local, new RemoteRef('b@h', new Pid('b@h', 1, 2, 3)), new RemoteRef('b@h', 'rooms')),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map((pairs) => Object.fromEntries(pairs)),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 }).map((pairs) => new Map(pairs)),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => new Set(items)),
  ),
})).value;

describe('messages as terms', () => {
  test('delivers any plain data as it was sent', () => {
    fc.assert(
      fc.property(plain, (value) => {
        const before = JSON.stringify(value, describeValue);
        expect(same(value, travel(value))).toBe(true);
        // Sending must not change the value.
        expect(JSON.stringify(value, describeValue)).toBe(before);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('keeps text as text and bytes as bytes, even if both look the same', () => {
    const back = travel({ text: 'abc', bytes: Buffer.from('abc') }) as { text: unknown; bytes: unknown };
    expect(back.text).toBe('abc');
    expect(Buffer.isBuffer(back.bytes) && back.bytes.toString()).toBe('abc');
  });

  test('keeps numbers as numbers beyond the exact integers', () => {
    expect(travel([2 ** 60, Number.NaN, Number.POSITIVE_INFINITY, -0, 3, 0.5])).toEqual([
      2 ** 60,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      -0,
      3,
      0.5,
    ]);
    expect(travel(3n)).toBe(3n);
  });

  test('omits undefined fields, and keeps positions in a list', () => {
    const back = travel({ a: 1, gone: undefined, list: [undefined, 2] }) as object;
    expect(Object.keys(back)).toEqual(['a', 'list']);
    expect((back as { list: unknown[] }).list).toEqual([undefined, 2]);
  });

  test('lets no key from another node reach a prototype', () => {
    const back = travel(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}')) as { [key: string]: unknown };
    expect(Object.getPrototypeOf(back)).toBe(null);
    expect(Object.keys(back).toSorted()).toEqual(['__proto__', 'constructor']);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf({ ...back })).toBe(Object.prototype);
  });

  test("recognises an actor's ref that returns as the same actor", () => {
    expect(travel({ type: 'bind', peer: local })).toEqual({ type: 'bind', peer: local });
    expect((travel(local) as AnyRef).key).toBe(local.key);
  });

  test('sends a message that Erlang reads as a map with text keys', () => {
    expect(data.toTerm({ type: 'load', seen: { rooms: 1 } })).toEqual({ type: 'load', seen: { rooms: 1 } });
  });

  test.each([
    ['a function', { type: 'x', run: () => 1 }, 'a function is not plain data'],
    ['an instance of a class', [new Date()], 'a Date is not plain data'],
    ['a symbol', Symbol('s'), 'a symbol is not plain data'],
    ['a term', { a: tuple(1) }, 'a Tuple is not plain data'],
  ])('refuses to send %s', (_, value, why) => {
    expect(() => travel(value)).toThrow(expect.objectContaining({ code: 'NOT_SENDABLE' }));
    expect(() => travel(value)).toThrow(why);
  });

  test('refuses values that contain themselves or are nested too deeply', () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => travel(loop)).toThrow('nested deeper');
    expect(() => travel(JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)))).toThrow(
      expect.objectContaining({ code: 'NOT_SENDABLE' }),
    );
  });

  test.each([1, 239, 240, 241, 242, 513, 1_000])('sends %i levels of metadata', (levels) => {
    const text = '{"a":['.repeat(levels / 2) + '[]'.repeat(levels % 2) + ']}'.repeat(levels / 2);
    expect(JSON.stringify(travel(JSON.parse(text)))).toBe(text);
  });

  test('turns any term from another node into some value', () => {
    const tags = ['$bytes', '$bigint', '$number', '$map', '$set', '$object', '$utf16', '$actor', '$deep', 'x'];
    const term = fc.letrec<{ term: Term }>((tie) => ({
      term: fc.oneof(
        { depthSize: 'small' },
        fc.oneof(fc.integer(), fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.uint8Array()),
        fc.constantFrom(encode(7), encode(tuple(atom('$deep'), encode([1])))),
        fc.constantFrom<Term>(null, true, undefined, atom('x'), localPid),
        fc.array(tie('term'), { maxLength: 3 }),
        fc.tuple(tie('term'), tie('term')).map(([k, v]) => new Map([[k, v]])),
        fc
          .tuple(fc.constantFrom(...tags), fc.array(tie('term'), { maxLength: 3 }))
          .map(([tag, rest]) => tuple(atom(tag), ...rest)),
      ),
    })).term;
    fc.assert(
      fc.property(term, (any) => {
        data.toValue(decode(encode(any)));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

function describeValue(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Map || value instanceof Set) return [...value];
  return value;
}
