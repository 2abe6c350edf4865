/**
 * Shapes of what other nodes send: functions that check a value once. They are our own because tools load them at start
 * (zod alone takes longer to load than such a tool) and every message between nodes passes through them.
 */
import { isRecord as isPlain, type Term } from '@bloom/etf';
import type { Outcome } from './outcome.js';
import type { Protocol, ReplyOf } from './protocol.js';

/** Returned by a shape for a value that it refuses. */
export const FAILED: unique symbol = Symbol('failed');

/** One check of a value: the refusing shape records what it expected, its parents record where. */
export class Reading {
  #expected = '';
  /** Keys on the path to the fault, innermost first; most messages have no fault. */
  #path: string[] | undefined;

  constructor(
    /** Node that sent the value. */
    readonly from: string,
    /** Returns the shapes of a living actor on this node, otherwise undefined. */
    readonly shapesAt: (ref: unknown) => AnyShapes | undefined,
  ) {}

  fail(expected: string): typeof FAILED {
    this.#expected = expected;
    this.#path = undefined;

    return FAILED;
  }

  in(key: string | number): typeof FAILED {
    this.#path ??= [];
    this.#path.push(String(key));

    return FAILED;
  }

  /** Never contains the value itself, which may be a secret. */
  get fault(): string {
    const where = this.#path?.toReversed().join('.').slice(0, 200) ?? 'the message';

    return `expected ${where} to be ${this.#expected}`;
  }
}

/**
 * Returns the value without unknown fields, or `FAILED`. May change the value, because a decoded value belongs to its
 * reader.
 */
export type Shape<T> = (value: unknown, reading: Reading) => T | typeof FAILED;

/** Marks a field that may be missing. */
export type OptionalShape<T> = Shape<T | undefined> & { readonly optional: true };

/** The required shape of a message of one type, and of its answer. */
export interface MessageShape<M, A, F = unknown> {
  readonly message: Shape<M>;
  readonly answer: Shape<A>;
  /** Shapes of the fields. */
  readonly fields: F;
}

/** Marks a message that only actors on the same node send. */
export const LOCAL = 'local';

type FieldsOf<F> = F extends (message: infer M) => unknown ? M : never;

/**
 * The shapes of a protocol. Every message has a shape or is `LOCAL`, and every field has one, including optional
 * fields: a field without a shape would be removed.
 */
export type Shapes<P extends Protocol> = {
  readonly [K in keyof P & string]:
    | (MessageShape<FieldsOf<P[K]>, Awaited<ReplyOf<P, K>>> & {
        readonly fields: Readonly<Record<keyof FieldsOf<P[K]>, unknown>>;
      })
    | typeof LOCAL;
};

export type AnyShapes = Readonly<Record<string, MessageShape<unknown, unknown> | typeof LOCAL>>;

// oxlint-disable-next-line typescript/no-explicit-any
type Fields = Readonly<Record<string, Shape<any>>>;
type Shaped<S> = S extends Shape<infer T> ? Exclude<T, typeof FAILED> : never;
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K] extends { optional: true } ? K : never }[keyof F];
export type ObjectOf<F extends Fields> = {
  [K in Exclude<keyof F, OptionalKeys<F>>]: Shaped<F[K]>;
} & { [K in OptionalKeys<F>]?: Exclude<Shaped<F[K]>, undefined> };

/** The shape of a message with these fields, and of its answer. */
export function takes<F extends Fields, A = void>(
  fields: F,
  answer: Shape<A> = nothing as Shape<A>,
): MessageShape<ObjectOf<F>, A, F> {
  return { message: fieldsOf(fields, ['type']), answer, fields };
}

/** The answer of a message that returns nothing. */
const nothing: Shape<void> = () => undefined;

/** Accepts any value: the receiver has its own schemas. */
export function unchecked<T>(): Shape<T> {
  return (value) => value as T;
}

/** Removes unknown fields, because handlers spread what they receive. */
export function object<F extends Fields>(fields: F): Shape<ObjectOf<F>> {
  return fieldsOf(fields, []);
}

function fieldsOf<F extends Fields>(fields: F, alsoKnown: readonly string[]): Shape<ObjectOf<F>> {
  const known: ReadonlySet<string> = new Set([...Object.keys(fields), ...alsoKnown]);
  const entries = Object.entries(fields);
  const keys = entries.map(([key]) => key);
  const shapes = entries.map(([, shape]) => shape);

  return (value, reading) => {
    if (!isRecord(value)) return reading.fail('an object');
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as string;
      const before = value[key];
      const after = (shapes[i] as Shape<unknown>)(before, reading);
      if (after === FAILED) return reading.in(key);
      if (after !== before) value[key] = after;
      // Erlang's atom `undefined` stands for a missing field.
      else if (after === undefined && key in value) delete value[key];
    }

    for (const key in value) if (!known.has(key)) delete value[key];

    return value as ObjectOf<F>;
  };
}

export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  const read: Shape<T | undefined> = (value, reading) => (value === undefined ? undefined : shape(value, reading));

  return Object.assign(read, { optional: true } as const);
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, reading) => (value === null ? null : shape(value, reading));
}

/** Replaces a value that the shape refuses with the fallback. */
export function otherwise<T, const F>(shape: Shape<T>, fallback: F): Shape<T | F> {
  return (value, reading) => {
    const read = shape(value, reading);

    return read === FAILED ? fallback : read;
  };
}

export function list<T>(shape: Shape<T>, most = Number.POSITIVE_INFINITY): Shape<T[]> {
  return (value, reading) => {
    if (!Array.isArray(value) || value.length > most) {
      return reading.fail(most === Number.POSITIVE_INFINITY ? 'a list' : `a list of at most ${most}`);
    }
    const items = value as unknown[];
    for (let i = 0; i < items.length; i++) {
      const after = shape(items[i], reading);
      if (after === FAILED) return reading.in(i);
      if (after !== items[i]) items[i] = after;
    }

    return items as T[];
  };
}

/** Objects distinguished by the value of one field. */
export function tagged<K extends string, V extends Readonly<Record<string, Fields>>>(
  key: K,
  variants: V,
): Shape<{ [T in keyof V & string]: { [P in K]: T } & ObjectOf<V[T]> }[keyof V & string]> {
  const shapes = new Map(Object.entries(variants).map(([tag, fields]) => [tag, fieldsOf(fields, [key])]));

  return (value, reading) => {
    const tag = isRecord(value) ? value[key] : undefined;
    const shape = typeof tag === 'string' ? shapes.get(tag) : undefined;
    if (shape === undefined) return reading.fail(`an object with a known ${key}`);

    return shape(value, reading) as never;
  };
}

/** The first of two shapes that accepts the value. */
export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return (value, reading) => {
    const read = first(value, reading);

    return read === FAILED ? second(value, reading) : read;
  };
}

/** The answer of an actor to a caller that can act on a failure. */
export function outcome<T, Code extends string>(
  value: Shape<T>,
  /** Lists every code, so that none is forgotten. Codes of later versions are read as `other`. */
  codes: Readonly<Record<Code, unknown>>,
  other: NoInfer<Code>,
): Shape<Outcome<T, Code>> {
  const success = object({ ok: constant(true), value });
  const failure = object({ ok: constant(false), code: otherwise(oneOf(Object.keys(codes)), other), message: text() });

  return ((given, reading) =>
    isRecord(given) && given['ok'] === true ? success(given, reading) : failure(given, reading)) as Shape<
    Outcome<T, Code>
  >;
}

export function text(most = Number.POSITIVE_INFINITY): Shape<string> {
  return (value, reading) => {
    if (typeof value === 'string' && value.length <= most) return value;

    return reading.fail(most === Number.POSITIVE_INFINITY ? 'a text' : `a text of at most ${most} characters`);
  };
}

export const flag: Shape<boolean> = (value, reading) =>
  typeof value === 'boolean' ? value : reading.fail('a boolean');

/** A finite number. */
export const number: Shape<number> = (value, reading) =>
  typeof value === 'number' && Number.isFinite(value) ? value : reading.fail('a number');

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value, reading) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
      ? (value as number)
      : reading.fail(`a whole number from ${least} to ${most}`);
}

/** A non-negative integer. */
export const count = integer(0);

export function constant<const T extends string | number | boolean | null>(expected: T): Shape<T> {
  return (value, reading) => (value === expected ? expected : reading.fail(String(expected)));
}

export function oneOf<const T extends string>(values: readonly T[]): Shape<T> {
  const known: ReadonlySet<unknown> = new Set(values);

  return (value, reading) => (known.has(value) ? (value as T) : reading.fail(`one of ${values.join(', ')}`));
}

export const bytes: Shape<Uint8Array> = (value, reading) =>
  value instanceof Uint8Array ? value : reading.fail('bytes');

/** The name of the node that sent the message, so that no node can speak for another. */
export const sender: Shape<string> = (value, reading) =>
  value === reading.from ? reading.from : reading.fail('the name of the node that sends it');

/** The name of the node that sent the message, whatever the message says; missing in one of this node. */
export const origin: OptionalShape<string> = Object.assign((_value: unknown, { from }: Reading) => from, {
  optional: true,
} as const);

/** Any JSON value, or undefined. */
export const json: Shape<unknown> = (value, reading) => (isJson(value) ? value : reading.fail('a JSON value'));

/** A value of this shape for which `holds` is true; `expected` describes it. */
export function limited<T>(shape: Shape<T>, holds: (value: T) => boolean, expected: string): Shape<T> {
  return (value, reading) => {
    const read = shape(value, reading);

    return read === FAILED || holds(read) ? read : reading.fail(expected);
  };
}

/** The value of a JSON text, or the value itself, which earlier versions send. */
export function jsonText<T>(shape: Shape<T>): Shape<T> {
  return (value, reading) => {
    if (typeof value !== 'string') return shape(value, reading);
    try {
      return shape(JSON.parse(value), reading);
    } catch {
      return reading.fail('JSON text');
    }
  };
}

function isJson(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      if (value === null) return true;
      if (Array.isArray(value)) return value.every(isJson);
      if (!isRecord(value)) return false;
      for (const key in value) if (!isJson(value[key])) return false;
      return true;
    default:
      return false;
  }
}

/** True for plain objects, as opposed to refs, bytes, terms and maps. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return isPlain(value as Term);
}
