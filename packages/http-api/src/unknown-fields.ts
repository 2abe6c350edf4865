import { nearest } from '@bloom/config';
import type { Log } from '@bloom/log';
import { LogThrottle } from '@bloom/time';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { FISHJAM_FIELDS } from './fishjam-client.js';
import type { Route } from './routes.js';

/** Names the fields of a body that have no effect. */
const UNKNOWN_FIELDS_HEADER = 'x-bloom-unknown-fields';
const MAX_NAMES = 10;
/** Further fields of a body are skipped: names that cannot be repeated would never reach `MAX_NAMES`. */
const MAX_FIELDS = 1_000;
/** Names of any other form are not repeated: they could break the header or fill the log. */
const NAME = /^[A-Za-z0-9_]{1,40}$/;
/** Maximum number of letters by which a suggested known name may differ. */
const MAX_DISTANCE = 3;

type Json = Readonly<Record<string, unknown>>;

/** The fields that an object may contain; a union has several shapes. */
interface Shape {
  /** Known fields, with the shapes of those that are objects. */
  readonly fields: ReadonlyMap<string, readonly Shape[]>;
  /** Fields with a fixed value, which distinguish the shapes of a union. */
  readonly constants: ReadonlyMap<string, unknown>;
}

/**
 * Returns a step that names the unknown fields of a body in a header of the response, and in a log line: a warning if
 * `warn`, at most once a minute for the same names, otherwise at debug level. SDKs of other releases send such fields,
 * so they are not an error.
 */
export function nameUnknownFields({ id, body }: Route, options: { warn: boolean; log: Log }): RequestHandler {
  const shapes = body === undefined ? [] : shapesOf(body);
  const throttle = new LogThrottle();

  return (request, response, next) => {
    const given: unknown = request.body;
    const fields = isObject(given) ? unknownFields(shapes, given).join(', ') : '';
    if (fields !== '') {
      response.setHeader(UNKNOWN_FIELDS_HEADER, fields);
      response.setHeader('access-control-expose-headers', UNKNOWN_FIELDS_HEADER);
      const log = (response.locals['log'] as Log | undefined) ?? options.log;
      const isWarning = options.warn && throttle.allows(fields);
      if (isWarning) log.warn('http.unknown_fields', { operation: id, fields });
      else log.debug('http.unknown_fields', { operation: id, fields });
    }
    next();
  };
}

interface Search {
  readonly found: Set<string>;
  fieldsLeft: number;
}

/** Returns up to ten names, each with a similar known name if there is one: `persistant (persistent?)`. */
function unknownFields(shapes: readonly Shape[], body: Json): string[] {
  const search = { found: new Set<string>(), fieldsLeft: MAX_FIELDS };
  collect(shapes, body, search);

  return [...search.found];
}

function collect(shapes: readonly Shape[], given: Json, search: Search): void {
  const fitting = shapes.filter(({ constants }) => [...constants].every(([name, value]) => given[name] === value));
  const possible = fitting.length > 0 ? fitting : shapes;
  for (const name of Object.keys(given)) {
    if (search.found.size >= MAX_NAMES || search.fieldsLeft === 0) return;
    search.fieldsLeft -= 1;
    const known = possible.flatMap(({ fields }) => fields.get(name) ?? []);
    const value = given[name];
    if (known.length > 0 && isObject(value)) collect(known, value, search);
    if (!NAME.test(name) || FISHJAM_FIELDS.has(name) || possible.some(({ fields }) => fields.has(name))) continue;
    search.found.add(withHint(name, possible));
  }
}

function withHint(name: string, shapes: readonly Shape[]): string {
  const names = shapes.flatMap(({ fields }) => [...fields.keys()]);
  const near = nearest(name, names, Math.min(MAX_DISTANCE, Math.floor(name.length / 3)));

  return near === undefined ? name : `${name} (${near}?)`;
}

/** Returns the shapes of the objects that a schema accepts; none if it accepts objects of any shape, or no objects. */
function shapesOf(schema: unknown): readonly Shape[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return shapesOf(schema.unwrap());
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(shapesOf);
  if (!(schema instanceof z.ZodObject)) return [];
  const entries = Object.entries(schema.shape as Record<string, unknown>);
  const constants = entries.flatMap(([name, field]) =>
    field instanceof z.ZodLiteral ? [[name, field.value] as const] : [],
  );

  return [{ fields: new Map(entries.map(([name, field]) => [name, shapesOf(field)])), constants: new Map(constants) }];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
