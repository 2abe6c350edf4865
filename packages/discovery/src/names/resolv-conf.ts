import { isIP } from 'node:net';

/** The parts of `/etc/resolv.conf` that matter for a query (resolv.conf(5)). */
export interface ResolverConfig {
  /** Addresses in order of preference; at most three are used. */
  readonly nameservers: readonly string[];
  readonly search: readonly string[];
  readonly ndots: number;
  readonly timeoutMs: number;
  readonly attempts: number;
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCH = 32;

/**
 * Parses a resolv.conf. Unknown lines are skipped; without servers the local one is used. Without a search list the
 * domain of `hostname` is searched, as the C library does.
 */
export function parseResolvConf(text: string, hostname = ''): ResolverConfig {
  const nameservers: string[] = [];
  let search: string[] | undefined;
  let ndots = 1;
  let timeoutMs = 5000;
  let attempts = 2;
  for (const raw of text.split('\n')) {
    const [keyword, ...values] = raw
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    const [server = ''] = values;
    // A name in place of an address would have to be resolved first.
    if (keyword === 'nameserver' && isIP(server) !== 0 && nameservers.length < MAX_NAMESERVERS)
      nameservers.push(server);
    // The last of `search` and `domain` wins.
    if ((keyword === 'search' || keyword === 'domain') && values.length > 0) search = values.slice(0, MAX_SEARCH);
    if (keyword !== 'options') continue;
    for (const option of values) {
      const [name, value] = option.split(':');
      const n = Number(value);
      if (!Number.isInteger(n) || n < 0) continue;
      if (name === 'ndots') ndots = Math.min(n, 15);
      if (name === 'timeout') timeoutMs = Math.min(Math.max(n, 1), 30) * 1000;
      if (name === 'attempts') attempts = Math.min(Math.max(n, 1), 5);
    }
  }
  const dot = hostname.indexOf('.');
  search ??= dot < 0 ? [] : [hostname.slice(dot + 1)];

  return { nameservers: nameservers.length > 0 ? nameservers : ['127.0.0.1'], search, ndots, timeoutMs, attempts };
}

/**
 * Returns the names to query, in order. A name with enough dots is tried unchanged first, others with the search list
 * first.
 */
export function candidateNames(name: string, config: Pick<ResolverConfig, 'search' | 'ndots'>): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const dots = name.split('.').length - 1;
  const searched = config.search
    .map((domain) => `${name}.${domain.replace(/^\.|\.$/g, '').toLowerCase()}`)
    .filter((n) => !n.endsWith('.'));
  return dots >= config.ndots ? [name, ...searched] : [...searched, name];
}
