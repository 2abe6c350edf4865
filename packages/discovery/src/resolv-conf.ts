/** The parts of `/etc/resolv.conf` that matter for a query (resolv.conf(5)). */
export interface ResolverConfig {
  /** Addresses in order of preference; at most three are used. */
  nameservers: readonly string[];
  search: readonly string[];
  ndots: number;
  timeoutMs: number;
  attempts: number;
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCH = 32;

/** Parses a resolv.conf. Unknown lines are skipped; without servers the local one is used. */
export function parseResolvConf(text: string): ResolverConfig {
  const nameservers: string[] = [];
  let search: string[] = [];
  let ndots = 1;
  let timeoutMs = 5000;
  let attempts = 2;
  for (const raw of text.slice(0, 65_536).split('\n')) {
    const [keyword, ...values] = raw
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && values[0] !== undefined && nameservers.length < MAX_NAMESERVERS)
      nameservers.push(values[0]);
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
    .map((domain) => `${name}.${domain.replace(/^\.|\.$/g, '')}`)
    .filter((n) => !n.endsWith('.'));
  return dots >= config.ndots ? [name, ...searched] : [...searched, name];
}
