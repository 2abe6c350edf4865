import { lookup, Resolver } from 'node:dns/promises';
import type { NameService } from './locate.js';

export interface NameServiceOptions {
  /** Name servers as `address` or `address:port`; defaults to those of the system. */
  servers?: readonly string[];
  timeoutMs?: number;
}

/** Queries the system's DNS servers; `addresses` also consults the hosts file. */
export function systemNames(options: NameServiceOptions = {}): NameService {
  const ask = async <T>(question: (resolver: Resolver) => Promise<T[]>): Promise<T[]> => {
    // Create a new resolver each time: the system's servers may have changed.
    const resolver = new Resolver({ timeout: options.timeoutMs ?? 2000, tries: 2 });
    if (options.servers !== undefined) resolver.setServers([...options.servers]);
    try {
      return await question(resolver);
    } catch {
      // No such name, no such record or no server: there is nothing to try.
      return [];
    }
  };
  return {
    naptr: (name) => ask((resolver) => resolver.resolveNaptr(name)),
    srv: (name) => ask((resolver) => resolver.resolveSrv(name)),
    addresses: async (name) => {
      const [four, six] = await Promise.all([
        ask((resolver) => resolver.resolve4(name)),
        ask((resolver) => resolver.resolve6(name)),
      ]);
      if (four.length + six.length > 0 || options.servers !== undefined) return [...four, ...six];
      try {
        return (await lookup(name, { all: true })).map((found) => found.address);
      } catch {
        return [];
      }
    },
  };
}
