import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Clock, Timer } from '@bloom/time';
import { ResolveError } from './names/resolve-error.js';
import type { Names } from './names/resolver.js';
import type { DiscoveryWarning, Strategy } from './strategy.js';

/**
 * Reports the A and AAAA records of one DNS name, queried at the start and then at a fixed interval. All nodes share
 * the part before the `@`, so an address is enough to name one. DNS only adds names: an error, an empty answer or a
 * name missing from one answer never removes a member.
 */
export function dnsStrategy(options: {
  /** Our full name; its host part is an address. */
  self: string;
  query: string;
  pollingIntervalMs: number;
  resolver: Pick<Names, 'addresses'>;
  warn: DiscoveryWarning;
  clock?: Clock;
}): Strategy {
  const at = options.self.indexOf('@');
  const name = options.self.slice(0, at);
  const family = isIP(options.self.slice(at + 1));
  let stopped = false;
  let polling = false;
  const timer = new Timer(options.clock);
  let lastProblem = '';

  async function poll(report: (nodes: readonly string[]) => void): Promise<void> {
    // A resolver slower than the interval must not pile up queries.
    if (polling) return;
    polling = true;
    try {
      const addresses = await options.resolver.addresses(options.query, { isFresh: true });
      lastProblem = '';
      const own = ownAddresses();
      const nodes = addresses
        // This node may be listed with both families, too.
        .filter((address) => isIP(address) === family || !own.has(address))
        .map((address) => `${name}@${address}`)
        .filter((node) => node !== options.self);
      if (!stopped && nodes.length > 0) report(nodes);
    } catch (error) {
      const problem = error instanceof ResolveError ? error.message : String(error);
      // Once per kind of failure: a name server that is down for hours must not fill the log.
      if (!stopped && problem !== lastProblem) {
        options.warn('discovery.dns_failed', { query: options.query, problem });
      }
      lastProblem = problem;
    } finally {
      polling = false;
    }
  }

  return {
    async start(report) {
      timer.repeat(options.pollingIntervalMs, () => void poll(report));
      await poll(report);
    },
    stop() {
      stopped = true;
      timer.stop();
    },
  };
}

function ownAddresses(): Set<string> {
  return new Set(
    Object.values(networkInterfaces())
      .flatMap((addresses = []) => addresses)
      .map(({ address }) => address),
  );
}
