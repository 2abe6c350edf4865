import { isSecretKey, MASK } from './mask.js';

/** Limits of one line, so that no field can flood the log: characters of a text, items of a list, nesting depth. */
const MAX_TEXT = 4_096;
const MAX_ITEMS = 50;
const MAX_DEPTH = 4;

interface FieldName {
  name: string;
  isSecret: boolean;
}

/** Names of fields by their keys. Bounded in number and length: the keys of a logged object may come from anybody. */
const names = new Map<string, FieldName>();
const MAX_NAMES = 1_000;
const MAX_KEY = 64;

/** Converts `roomId` to `room_id`; keeps snake_case. */
function nameOf(key: string): FieldName {
  const known = names.get(key);
  if (known !== undefined) return known;
  const name = key.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
  const made = { name, isSecret: isSecretKey(name) };
  if (names.size < MAX_NAMES && key.length <= MAX_KEY) names.set(key, made);

  return made;
}

function plainText(text: string, mask: (text: string) => string): string {
  const masked = mask(text);

  return masked.length > MAX_TEXT ? `${masked.slice(0, MAX_TEXT)}...` : masked;
}

function plainError(error: Error, mask: (text: string) => string, depth: number): Record<string, unknown> {
  const plain: Record<string, unknown> = { message: plainText(error.message, mask) };
  const code: unknown = 'code' in error ? error.code : undefined;

  if (typeof code === 'string' || typeof code === 'number') plain['code'] = code;
  if (typeof error.stack === 'string') plain['stack'] = plainText(error.stack, mask);
  if (error.cause !== undefined && depth < MAX_DEPTH) plain['cause'] = plainValue(error.cause, mask, depth + 1);

  return plain;
}

function plainValue(value: unknown, mask: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return plainText(value, mask);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object') return value === undefined ? null : `<${typeof value}>`;
  if (value instanceof Error) return plainError(value, mask, depth);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`;
  if (depth >= MAX_DEPTH) return '<nested>';
  if (value instanceof Set) return plainValue([...value], mask, depth);
  if (value instanceof Map) return plainValue(Object.fromEntries(value), mask, depth);
  if (Array.isArray(value)) {
    const items = value.slice(0, MAX_ITEMS).map((item) => plainValue(item, mask, depth + 1));
    return value.length > MAX_ITEMS ? [...items, `<${value.length - MAX_ITEMS} more>`] : items;
  }

  return plainObject(value as Record<string, unknown>, mask, depth + 1);
}

function plainObject(
  object: Readonly<Record<string, unknown>>,
  mask: (text: string) => string,
  depth: number,
): Record<string, unknown> {
  const plain: Record<string, unknown> = {};

  for (const key of Object.keys(object).slice(0, MAX_ITEMS)) {
    const value = object[key];
    if (value === undefined) continue;

    const { name, isSecret } = nameOf(key);
    plain[name] = isSecret && value !== null ? MASK : plainValue(value, mask, depth);
  }

  return plain;
}

/** Returns the fields as bounded, masked JSON values with snake_case names; never throws. */
export function plainFields(
  fields: Readonly<Record<string, unknown>>,
  mask: (text: string) => string,
): Record<string, unknown> {
  try {
    return plainObject(fields, mask, 0);
  } catch (error) {
    return { unprintable: error instanceof Error ? error.message : 'fields' };
  }
}
