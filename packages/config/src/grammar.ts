import { isIP } from 'node:net';

/** Parses the text of a variable. */
export interface Grammar<T> {
  /** Name on the reference page. */
  readonly name: string;
  /** Accepted values, as the end of "expected ...". */
  readonly expected: string;
  /** True if an empty value counts as unset: for texts, because container tooling injects empty values. */
  readonly emptyIsUnset: boolean;
  /**
   * Removes what `--env-file` and mounted secrets leave around a value: quotes at both ends and line breaks after it.
   * Absent where these might belong to the value (tokens, secrets, hosts, paths), which is refused then.
   */
  readonly trims?: true;
  /** Parses a value. Returns undefined if the text is invalid. */
  parse(text: string): T | undefined;
}

export interface PortRange {
  min: number;
  max: number;
}

/** Longest timer delay (2^31 - 1 ms). */
export const MAX_DELAY_MS = 2_147_483_647;

export const bool: Grammar<boolean> = {
  name: 'boolean',
  expected: '`true` or `false`',
  trims: true,
  emptyIsUnset: false,
  parse: (text) => {
    const lower = text.toLowerCase();

    return lower === 'true' ? true : lower === 'false' ? false : undefined;
  },
};

/** A boolean, or one of these words. */
export function boolOr<const T extends string>(...words: readonly T[]): Grammar<boolean | T> {
  const listed = words.map((word) => `\`${word}\``).join(', ');

  return {
    ...bool,
    name: `boolean, ${listed}`,
    expected: `\`true\`, \`false\` or ${listed}`,
    parse: (value) => bool.parse(value) ?? words.find((word) => word === value),
  };
}

export const ip: Grammar<string> = {
  name: 'ip',
  expected: 'a literal IPv4 or IPv6 address',
  trims: true,
  emptyIsUnset: false,
  parse: (text) => (isIP(text) === 0 ? undefined : text),
};

/** One address, or one of each IP family separated by a space. */
export const ipOfEachFamily: Grammar<readonly string[]> = {
  name: 'ip, or IPv4 and IPv6',
  expected: 'a literal IPv4 or IPv6 address, or one of each, separated by a space',
  trims: true,
  emptyIsUnset: false,
  parse: (text) => {
    const addresses = text.split(' ');
    const families = addresses.map((address) => isIP(address));

    return families.includes(0) || new Set(families).size < families.length ? undefined : addresses;
  },
};

/** An address or a CIDR range. */
export const network: Grammar<string> = {
  name: 'ip or CIDR range',
  expected: 'a literal IPv4 or IPv6 address or a CIDR range such as `10.0.0.0/8`',
  trims: true,
  emptyIsUnset: true,
  parse: (text) => {
    const match = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text);
    const family = isIP(match?.[1] ?? '');

    return family === 0 || Number(match?.[2] ?? 0) > (family === 4 ? 32 : 128) ? undefined : text;
  },
};

const HOST_NAME =
  /^(?=.{1,253}$)(?!.*\.\d+$)[0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?(?:\.[0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?)*$/i;

/** An address of this node, a name that resolves to one, or `auto`. */
export const mediaAddress: Grammar<readonly string[]> = {
  name: 'ip, IPv4 and IPv6, host name or `auto`',
  expected: 'an IPv4 or IPv6 address or one of each, a host name, or `auto`',
  trims: true,
  emptyIsUnset: false,
  parse: (text) => ipOfEachFamily.parse(text) ?? (HOST_NAME.test(text) ? [text] : undefined),
};

/** Returns a grammar for decimal digits only: no sign, blanks or trailing junk. */
export function integer(min: number, max: number, unit = ''): Grammar<number> {
  const range = max === MAX_DELAY_MS || max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `${min}..${max}`;

  return {
    name: `integer ${range}`,
    expected: `an integer ${range}${unit}`,
    trims: true,
    emptyIsUnset: false,
    parse: (text) => {
      if (!/^\d{1,16}$/.test(text)) return undefined;
      const value = Number(text);

      return value >= min && value <= max ? value : undefined;
    },
  };
}

export const port: Grammar<number> = { ...integer(1, 65_535), name: 'port' };

export const portRange: Grammar<PortRange> = {
  name: 'port range',
  expected: 'two ports `A-B` with 0 <= A <= B <= 65535',
  trims: true,
  emptyIsUnset: false,
  parse: (text) => {
    const match = /^(\d{1,5})-(\d{1,5})$/.exec(text);
    if (match === null) return undefined;

    const min = Number(match[1]);
    const max = Number(match[2]);

    return min <= max && max <= 65_535 ? { min, max } : undefined;
  },
};

/** Pairs of a worker's port and the one that clients reach, or the distance between all of them. */
export type PortMapping = number | readonly (readonly [worker: number, advertised: number])[];

export const portMapping: Grammar<PortMapping> = {
  name: 'port mapping',
  expected: 'pairs `worker port=advertised port`, separated by spaces, or one offset `+N`',
  trims: true,
  emptyIsUnset: true,
  parse: (value) => {
    if (value.startsWith('+')) return port.parse(value.slice(1));
    const pairs: [number, number][] = [];
    for (const part of value.split(' ')) {
      if (part === '') continue;
      const [worker, advertised, ...rest] = part.split('=').map((digits) => port.parse(digits));
      if (worker === undefined || advertised === undefined || rest.length > 0) return undefined;
      pairs.push([worker, advertised]);
    }

    return pairs.length === 0 ? undefined : pairs;
  },
};

export const text: Grammar<string> = { name: 'text', expected: 'a text', emptyIsUnset: true, parse: (value) => value };

/** A text around which quotes have no meaning. */
export const word: Grammar<string> = { ...text, trims: true };

/** `host[:port]`, IPv6 in brackets. */
export function hostAndPort(defaultPort: number): Grammar<{ host: string; port: number }> {
  return {
    name: 'host',
    expected: '`host[:port]`, IPv6 in brackets',
    emptyIsUnset: true,
    parse: (value) => {
      const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/]+))(?::(\d{1,5}))?$/i.exec(value);
      const [, v6, name, digits] = match ?? [];
      const host = v6 ?? name;
      const chosen = digits === undefined ? defaultPort : port.parse(digits);
      if (host === undefined || chosen === undefined) return undefined;
      if (v6 === undefined ? isIP(host) === 0 && !HOST_NAME.test(host) : isIP(v6) !== 6) return undefined;

      return { host, port: chosen };
    },
  };
}

/** A text that must not be empty: omitting it is a decision, an empty value an accident. */
export const nonEmptyText: Grammar<string> = {
  ...text,
  expected: 'a text that is not empty',
  emptyIsUnset: false,
  parse: (value) => (value === '' ? undefined : value),
};

export function oneOf<const T extends string>(...values: readonly T[]): Grammar<T> {
  return {
    name: values.map((value) => `\`${value}\``).join(', '),
    expected: `one of ${values.map((value) => `\`${value}\``).join(', ')}`,
    trims: true,
    emptyIsUnset: true,
    parse: (value) => values.find((one) => one === value),
  };
}

/** `<nodename>@<hostname>` with exactly one `@` and no empty part. */
export const nodeName: Grammar<string> = {
  name: 'node name',
  expected: 'a node name `<nodename>@<hostname>`',
  trims: true,
  emptyIsUnset: true,
  parse: (value) => (/^[^@\s]+@[^@\s]+$/.test(value) ? value : undefined),
};

/** Returns a grammar for items separated by single spaces; empty items are dropped. */
export function listOf<T>(item: Grammar<T>): Grammar<readonly T[]> {
  return {
    name: `list of ${item.name}s`,
    expected: `a list, separated by spaces, each item ${item.expected}`,
    trims: true,
    emptyIsUnset: true,
    parse: (value) => {
      const items: T[] = [];

      for (const part of value.split(' ')) {
        if (part === '') continue;
        const parsed = item.parse(part);
        if (parsed === undefined) return undefined;
        items.push(parsed);
      }

      return items;
    },
  };
}

/** `host[:port][/path]` without a scheme; one trailing `/` is stripped. */
export const publicHost: Grammar<string> = {
  name: 'host',
  expected: '`host[:port][/path]` without scheme and blanks, IPv6 in brackets',
  emptyIsUnset: true,
  parse: (value) => {
    if (value.includes('://') || /\s/.test(value)) return undefined;

    const stripped = value.endsWith('/') ? value.slice(0, -1) : value;
    const match = /^(?:\[([0-9A-Fa-f:.]+)\]|[^:/[\]]+)(?::(\d{1,5}))?(?:\/.*)?$/.exec(stripped);
    if (match === null) return undefined;
    if (match[1] !== undefined && isIP(match[1]) !== 6) return undefined;
    if (match[2] !== undefined && port.parse(match[2]) === undefined) return undefined;

    return stripped;
  },
};

/** Prefix of object keys: names separated by `/`. */
export const keyPrefix: Grammar<string> = {
  name: 'path',
  expected: 'a path without the parts `.` and `..`',
  emptyIsUnset: true,
  parse: (value) => (value.split('/').some((part) => part === '.' || part === '..') ? undefined : value),
};

export const httpUrl: Grammar<string> = {
  name: 'URL',
  expected: 'a URL with the scheme http or https',
  emptyIsUnset: true,
  parse: (value) => {
    try {
      const url = new URL(value);

      return url.protocol === 'http:' || url.protocol === 'https:' ? value.replace(/\/$/, '') : undefined;
    } catch {
      return undefined;
    }
  },
};
