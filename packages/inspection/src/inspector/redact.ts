import { isActorRef } from '@bloom/actors';
import { isSecretKey, MASK } from '@bloom/log';

/** Limits of a shown value. */
export interface Cut {
  /** Maximum nesting depth. */
  depth: number;
  /** Approximate length of its JSON text. */
  bytes: number;
}

export interface Shown {
  /** Plain JSON. */
  value: unknown;
  /** True when something was left out. */
  truncated: boolean;
  /** Number of replaced values. */
  redacted: number;
}

/** Secret field names in addition to those of the log. */
const MORE_SECRET_KEYS = /(^|_)(pwd|pass|passphrase|access_key_id|access_key|api_key|signing_key|signature|nonce)$/;

/**
 * Patterns of secrets inside texts: peer tokens (Phoenix), JSON web tokens, HTTP and SIP headers, ICE passwords in
 * session descriptions, users and secret parameters of URLs, and secret fields of JSON texts. The first group of a
 * match is kept.
 */
const SECRET_TEXTS: readonly RegExp[] = [
  /()\bSFMyNTY\.[\w-]+\.[\w-]+/g,
  /()\beyJ[\w-]{5,}\.[\w-]+\.[\w-]+/g,
  /\b(Bearer\s+)[^\s"',]+/gi,
  /\b((?:Proxy-)?Authorization:(?!\s*Bearer\s)\s*)[^\r\n]+/gi,
  /\b(a=ice-pwd:)[^\s\\]+/g,
  /(\/\/)[^\s/?#@"']+(?=@)/g,
  /([?&][\w-]*(?:token|password|passwd|pwd|secret|signature|sig|auth|key)=)[^\s&#"']+/gi,
  // In nested JSON text, the same number of backslashes precedes the quotes around a value, and more precede those
  // inside it.
  /(\\{0,15}"[\w-]*(?:token|password|passwd|pwd|secret|cookie|authorization|credentials?|private_?key|access_?key)\\{0,15}"\s*:\s*(\\{0,15})")(?:(?!(?<!\\)\2")[^])*/gi,
];

/** Cheap test before the patterns: every match contains one of these. */
const SUSPECT = /SFMyNTY|eyJ|bearer|ice-pwd|token|passw|pwd|secret|cookie|auth|credential|key|sig|:\/\/[^/]*@/i;

/** Maximum length of a shown text. */
const MAX_TEXT = 65_536;
/** Maximum length of a secret. This much beyond the shown text is searched, so that no secret is shown in part. */
const MAX_SECRET = 4_096;

/** Replaces a part beyond the depth. */
const NESTED = '<nested>';

/**
 * Replaces secrets and cuts values on the answering side. Knows the node's own secrets by value, others by name and
 * pattern.
 */
export class Redactor {
  readonly #mask: (text: string) => string;

  /** `mask` replaces the known secrets (`createMasker`). */
  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** Returns at most `length` characters of a text, without secrets. */
  text(text: string, length = MAX_TEXT): string {
    const seen = text.slice(0, length + MAX_SECRET);
    let shown = this.#mask(seen);
    if (SUSPECT.test(shown)) {
      for (const pattern of SECRET_TEXTS) shown = shown.replaceAll(pattern, `$1${MASK}`);
    }
    // The end may be the start of a secret, which no pattern would find.
    if (seen.length < text.length) shown = shown.slice(0, Math.max(0, shown.length - MAX_SECRET));

    return shown.slice(0, length);
  }

  /**
   * Returns plain JSON without secrets, cut to the limits. Never throws, and calls nothing of the value except getters.
   */
  show(value: unknown, cut: Cut): Shown {
    const state: State = { left: cut.bytes, truncated: false, redacted: 0 };
    let shown: unknown;
    try {
      shown = this.#show(value, cut.depth, state);
    } catch (error) {
      shown = `<unprintable: ${this.text(error instanceof Error ? error.message : 'no error')}>`;
    }

    return { value: shown, truncated: state.truncated, redacted: state.redacted };
  }

  #show(value: unknown, depth: number, state: State): unknown {
    switch (typeof value) {
      case 'string':
        return this.#string(value, state);
      case 'number':
        state.left -= 8;
        return Number.isFinite(value) ? value : String(value);
      case 'boolean':
        state.left -= 5;
        return value;
      case 'bigint':
        return this.#string(String(value), state);
      case 'undefined':
        state.left -= 4;
        return null;
      case 'object':
        return value === null ? null : this.#object(value, depth, state);
      default:
        return `<${typeof value}>`;
    }
  }

  #string(text: string, state: State): string {
    // Mask before cutting: half a secret cannot be recognised.
    const room = Math.min(MAX_TEXT, Math.max(0, state.left - 2));
    const masked = this.text(text, room);
    state.left -= masked.length + 2;
    if (!text.startsWith(masked)) state.redacted++;
    if (text.length <= room) return masked;
    state.truncated = true;
    // Do not split a surrogate pair: half of one cannot be encoded.
    const end = /[\uD800-\uDBFF]$/.test(masked) ? masked.length - 1 : masked.length;

    return `${masked.slice(0, end)}…`;
  }

  #object(value: object, depth: number, state: State): unknown {
    if (value instanceof Error) return this.#string(`${value.name}: ${value.message}`, state);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`;
    if (value instanceof ArrayBuffer) return `<${value.byteLength} bytes>`;
    if (value instanceof Promise) return '<promise>';
    if (isActorRef(value)) return this.#string(`<actor ${value.path}>`, state);
    if (depth <= 0) {
      state.truncated = true;
      return NESTED;
    }
    state.left -= 2;
    if (Array.isArray(value)) return this.#list(value, depth, state);
    if (value instanceof Set) return this.#list(value, depth, state);
    if (value instanceof Map) return this.#fields(value as Map<unknown, unknown>, depth, state);

    return this.#fields(ownFields(value), depth, state);
  }

  #list(items: Iterable<unknown> & ({ length: number } | { size: number }), depth: number, state: State): unknown[] {
    const total = 'length' in items ? items.length : items.size;
    const shown: unknown[] = [];
    for (const item of items) {
      if (state.left <= 0) {
        state.truncated = true;
        shown.push(`<${total - shown.length} more>`);
        break;
      }
      shown.push(this.#show(item, depth - 1, state));
      state.left -= 1;
    }

    return shown;
  }

  #fields(fields: Iterable<[unknown, unknown]>, depth: number, state: State): Record<string, unknown> {
    const shown: [string, unknown][] = [];
    for (const [name, value] of fields) {
      if (value === undefined || typeof value === 'function') continue;
      if (state.left <= 0) {
        state.truncated = true;
        shown.push(['…', '<more>']);
        break;
      }
      const key = this.#string(typeof name === 'string' ? name : this.#keyText(name), state);
      if (isSecretName(key) && value !== null && value !== '') {
        state.redacted++;
        shown.push([key, MASK]);
      } else shown.push([key, this.#show(value, depth - 1, state)]);
    }

    // Do not assign: a name may be `__proto__`.
    return Object.fromEntries(shown);
  }

  #keyText(key: unknown): string {
    return typeof key === 'object' && key !== null ? '<object>' : String(key);
  }
}

interface State {
  /** Characters left for the JSON text. */
  left: number;
  truncated: boolean;
  redacted: number;
}

/** Cache by name, because the same few names keep recurring. */
const known = new Map<string, boolean>();
const MAX_KNOWN = 1_000;

/** True for names whose value is always secret. */
export function isSecretName(name: string): boolean {
  if (name.length > 100) return looksSecret(name);
  let secret = known.get(name);
  if (secret === undefined) {
    secret = looksSecret(name);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(name, secret);
  }

  return secret;
}

function looksSecret(name: string): boolean {
  const snake = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[-.\s]/g, '_')
    .toLowerCase();

  return isSecretKey(snake) || MORE_SECRET_KEYS.test(snake);
}

function* ownFields(value: object): Generator<[string, unknown]> {
  for (const name of Object.keys(value)) {
    let field: unknown;
    try {
      field = (value as Record<string, unknown>)[name];
    } catch {
      field = '<unreadable>';
    }
    yield [name, field];
  }
}

/**
 * Returns the part of a plain value at a path of names, indexes and `*` separated by dots; `*` yields a list or a
 * record.
 */
export function part(value: unknown, path: string): unknown {
  return step(value, path.split('.').slice(0, 16));
}

function step(value: unknown, names: readonly string[]): unknown {
  const [name, ...rest] = names;
  if (name === undefined) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  if (value instanceof Map) return step(Object.fromEntries([...value].map(([k, v]) => [String(k), v])), names);
  if (value instanceof Set) return step([...value], names);
  if (name === '*' && Array.isArray(value)) {
    return value.map((item) => step(item, rest)).filter((item) => item !== undefined);
  }
  if (name === '*') {
    const found = Object.keys(value).map((key): [string, unknown] => [key, field(value, key, rest)]);
    return Object.fromEntries(found.filter(([, item]) => item !== undefined));
  }

  return Object.hasOwn(value, name) ? field(value, name, rest) : undefined;
}

/** Returns the field's value. Masks a secret even when its name is in the middle of the path. */
function field(value: object, name: string, rest: readonly string[]): unknown {
  return isSecretName(name) ? MASK : step((value as Record<string, unknown>)[name], rest);
}
