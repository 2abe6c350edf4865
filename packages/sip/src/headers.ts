/** The header fields of a message, RFC 3261 section 7.3: case-insensitive names, values in order. */

// Maps, not objects: names come from the network, and every object has a `constructor`.

/** One-letter forms, RFC 3261 section 7.3.3 and the registry of later ones. */
const compactForms = new Map([
  ['a', 'accept-contact'],
  ['b', 'referred-by'],
  ['c', 'content-type'],
  ['e', 'content-encoding'],
  ['f', 'from'],
  ['i', 'call-id'],
  ['k', 'supported'],
  ['l', 'content-length'],
  ['m', 'contact'],
  ['o', 'event'],
  ['r', 'refer-to'],
  ['s', 'subject'],
  ['t', 'to'],
  ['u', 'allow-events'],
  ['v', 'via'],
  ['x', 'session-expires'],
]);

/** Fields whose comma-separated values may share a line. */
const listed = new Set([
  'via',
  'route',
  'record-route',
  'contact',
  'allow',
  'supported',
  'require',
  'proxy-require',
  'unsupported',
]);

/** Spelling on the wire where capitalising each word is not enough. */
const spelling = new Map([
  ['call-id', 'Call-ID'],
  ['cseq', 'CSeq'],
  ['mime-version', 'MIME-Version'],
  ['www-authenticate', 'WWW-Authenticate'],
]);

function canonicalName(name: string): string {
  const lower = name.toLowerCase();
  return compactForms.get(lower) ?? lower;
}

export class SipHeaders {
  readonly #values = new Map<string, string[]>();

  constructor(entries: Iterable<readonly [name: string, value: string]> = []) {
    for (const [name, value] of entries) this.add(name, value);
  }

  /** Returns the first value. */
  get(name: string): string | undefined {
    return this.#values.get(canonicalName(name))?.[0];
  }

  all(name: string): readonly string[] {
    return this.#values.get(canonicalName(name)) ?? [];
  }

  /** Appends values and returns how many; a line with several values is split. */
  add(name: string, value: string): number {
    const key = canonicalName(name);
    const values = listed.has(key) ? splitList(value) : [value];
    const known = this.#values.get(key);
    if (known !== undefined) known.push(...values);
    else this.#values.set(key, values);

    return values.length;
  }

  /** Replaces all values; without any, removes the field. */
  set(name: string, ...values: string[]): void {
    if (values.length === 0) this.#values.delete(canonicalName(name));
    else this.#values.set(canonicalName(name), values);
  }

  *[Symbol.iterator](): Iterator<[name: string, value: string]> {
    for (const [key, values] of this.#values) {
      const name = spelling.get(key) ?? key.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase());
      for (const value of values) yield [name, value];
    }
  }
}

/** Splits at commas outside quotes and angle brackets. */
export function splitList(text: string): string[] {
  const parts: string[] = [];
  let quoted = false;
  let bracketed = false;
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (quoted) {
      if (char === '\\') at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '<') bracketed = true;
    else if (char === '>') bracketed = false;
    else if (char === ',' && !bracketed) {
      parts.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  parts.push(text.slice(start).trim());
  return parts.filter((part) => part !== '');
}
