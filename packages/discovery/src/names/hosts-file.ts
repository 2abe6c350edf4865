import { isIP } from 'node:net';

/** Maximum number of name and address pairs; the rest of the file is ignored. */
const MAX_PAIRS = 20_000;

/**
 * Parses a hosts file (hosts(5)). Returns the addresses of each name in lower case, IPv4 first; bad lines are skipped.
 */
export function parseHostsFile(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  let pairs = 0;
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*$/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names.slice(0, MAX_PAIRS - pairs)) {
      pairs += 1;
      const key = name.toLowerCase();
      const known = hosts.get(key);
      if (known === undefined) hosts.set(key, [address]);
      else if (!known.includes(address)) known.push(address);
    }
  }

  for (const addresses of hosts.values()) addresses.sort((a, b) => isIP(a) - isIP(b));
  return hosts;
}
