import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fuzzRuns } from '@bloom/time/testing';
import { Atom, atom, Pid, tuple } from '@bloom/etf';
import { LocalRef, actor, RemoteRef } from './ref.js';
import {
  bytes,
  constant,
  count,
  either,
  FAILED,
  flag,
  integer,
  json,
  jsonText,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  otherwise,
  outcome,
  Reading,
  origin,
  sender,
  tagged,
  takes,
  text,
  unchecked,
  type AnyShapes,
  type Shape,
  type Shapes,
} from './shape.js';

const reading = (shapesAt: (ref: unknown) => AnyShapes | undefined = () => undefined): Reading =>
  new Reading('b@host', shapesAt);
const read = (shape: Shape<unknown>, value: unknown): unknown => shape(value, reading());
const faultOf = (shape: Shape<unknown>, value: unknown): string => {
  const look = reading();

  return shape(value, look) === FAILED ? look.fault : 'none';
};

describe('a shape', () => {
  test.each<[string, Shape<unknown>, { good: unknown[]; bad: unknown[] }]>([
    ['text', text(3), { good: ['', 'abc'], bad: ['abcd', 1, null, undefined, atom('abc')] }],
    ['a boolean', flag, { good: [true, false], bad: [0, 'true', null] }],
    ['a number', number, { good: [0, -1.5, 1e308], bad: [Number.NaN, Infinity, 1n, '1'] }],
    ['a count', count, { good: [0, 2 ** 53 - 1], bad: [-1, 0.5, 2 ** 53, Number.NaN] }],
    ['an integer in its range', integer(1, 3), { good: [1, 3], bad: [0, 4, 2.5] }],
    ['a constant', constant('a'), { good: ['a'], bad: ['b', null] }],
    ['one of some words', oneOf(['a', 'b']), { good: ['a', 'b'], bad: ['c', 1, '__proto__'] }],
    ['bytes', bytes, { good: [new Uint8Array(2)], bad: ['ab', [1]] }],
    ['a list', list(flag, 2), { good: [[], [true, false]], bad: [[true, false, true], [1], {}, 'ab'] }],
    ['null or a text', nullable(text()), { good: [null, 'a'], bad: [undefined, 1] }],
    ['either of two', either(flag, object({ a: flag })), { good: [true, { a: true }], bad: [{ a: 1 }, 'a'] }],
    ['the name of its sender', sender, { good: ['b@host'], bad: ['c@host', undefined] }],
    [
      'JSON',
      json,
      { good: [null, [{ a: ['b', 1.5, true] }], undefined], bad: [1n, [Number.NaN], { a: new Map() }, atom('a')] },
    ],
    [
      'JSON with no address in it',
      json,
      { good: [{}], bad: [{ a: new LocalRef('/a', '/a#1') }, [new Uint8Array(1)], tuple(1)] },
    ],
  ])('accepts %s and nothing else', (_what, shape, { good, bad }) => {
    for (const value of good) expect(read(shape, value)).toEqual(value);
    for (const value of bad) expect(read(shape, value)).toBe(FAILED);
  });

  test('fills in which node has sent a message, whatever the message says', () => {
    const shape = object({ node: origin });
    expect(read(shape, {})).toEqual({ node: 'b@host' });
    expect(read(shape, { node: 'c@host' })).toEqual({ node: 'b@host' });
  });

  test('drops unknown fields of an object, and names the field but not its value in a refusal', () => {
    const shape = object({ room: object({ ids: list(text()) }), muted: optional(flag) });
    expect(read(shape, { room: { ids: ['a'], more: 1 }, later: 'x' })).toEqual({ room: { ids: ['a'] } });
    expect(faultOf(shape, { room: { ids: ['a', 7_777] } })).toBe('expected room.ids.1 to be a text');
    expect(faultOf(shape, { room: { ids: [] }, muted: 'secret' })).toBe('expected muted to be a boolean');
    expect(faultOf(shape, null)).toBe('expected the message to be an object');
  });

  test('drops an optional field that is undefined', () => {
    expect(Object.keys(read(object({ a: optional(flag) }), { a: undefined }) as object)).toEqual([]);
  });

  test('accepts only known variants', () => {
    const shape = tagged('type', { a: { x: count }, b: {} });
    expect(read(shape, { type: 'a', x: 1 })).toEqual({ type: 'a', x: 1 });
    expect(read(shape, { type: 'a' })).toBe(FAILED);
    for (const type of ['c', 'constructor', '__proto__', null]) expect(read(shape, { type })).toBe(FAILED);
  });

  test('replaces what the shape refuses with a fallback', () => {
    const shape = object({ code: otherwise(oneOf(['A']), 'B'), n: count });
    expect(read(shape, { code: 'new', n: 1 })).toEqual({ code: 'B', n: 1 });
    expect(faultOf(shape, { code: 'new', n: -1 })).toMatch(/^expected n to be/);
  });

  test('reads codes of later versions in an outcome as a known one', () => {
    const shape = outcome(count, { GONE: true, LOST: true }, 'LOST');
    expect(read(shape, { ok: true, value: 1 })).toEqual({ ok: true, value: 1 });
    expect(read(shape, { ok: false, code: 'NEW', message: 'm' })).toEqual({ ok: false, code: 'LOST', message: 'm' });
    expect(read(shape, { ok: true, value: 'x' })).toBe(FAILED);
    expect(read(shape, {})).toBe(FAILED);
  });

  test('parses JSON text, and accepts the value itself', () => {
    const shape = jsonText(list(count));
    expect(read(shape, '[1,2]')).toEqual([1, 2]);
    expect(read(shape, [1])).toEqual([1]);
    for (const bad of ['[', '["a"]', '{}']) expect(read(shape, bad)).toBe(FAILED);
  });

  describe('shapes of addresses', () => {
    type Door = { open: (message: object) => boolean };
    const DOOR: Shapes<Door> = { open: takes({}, flag) };
    const WALL: AnyShapes = {};
    const shape = actor(() => DOOR);
    const ref = new LocalRef('/a', '/a#1');

    test('gives an actor on another node the shapes of its answers', () => {
      const far = new RemoteRef('b@host', new Pid('b@host', 1, 2, 3));
      expect(read(shape, far)).toMatchObject({ node: 'b@host', shapes: DOOR });
    });

    test('accepts a living actor on this node only if it is of the declared kind', () => {
      expect(
        shape(
          ref,
          reading(() => DOOR as AnyShapes),
        ),
      ).toBe(ref);
      expect(
        shape(
          ref,
          reading(() => WALL),
        ),
      ).toBe(FAILED);
      expect(shape(ref, reading())).toBe(ref);
    });

    test('refuses a local actor of another kind by its name too', () => {
      expect(
        shape(
          new RemoteRef('a@host', 'wall'),
          reading(() => WALL),
        ),
      ).toBe(FAILED);
    });

    test.each([[{ path: '/a', key: '/a#1' }], ['/a'], [null], [new Pid('b@host', 1, 2, 3)]])(
      'refuses what only looks like an address: %j',
      (value) => {
        expect(read(shape, value)).toBe(FAILED);
      },
    );
  });

  test('never throws, whatever the value', () => {
    const everything = object({
      a: optional(nullable(list(either(text(1), json), 3))),
      b: tagged('type', { x: { y: jsonText(unchecked()) }, z: { o: outcome(bytes, { A: true }, 'A') } }),
      c: otherwise(
        actor(() => ({})),
        null,
      ),
    });
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true, withTypedArray: true, maxDepth: 5 }),
        fc.constantFrom(everything as Shape<unknown>, json, takes({ a: json }).message),
        (value, shape) => {
          shape(value, reading());
          shape({ b: { type: 'x', y: value } }, reading());
          shape({ a: value, b: value, c: value }, reading());
        },
      ),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('accepts exactly the values that survive a JSON round trip', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(read(json, value)).toBe(value);
      }),
      { numRuns: fuzzRuns(500) },
    );
    expect(read(json, new Atom('a'))).toBe(FAILED);
  });
});
