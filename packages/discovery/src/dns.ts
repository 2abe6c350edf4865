import type { Resolve4 } from './resolver.js';
import { ResolveError } from './resolver.js';
import type { DiscoveryWarning, Strategy } from './strategy.js';

/**
 * The A records of one DNS name, asked for at start and then at a steady interval. All instances share the part before
 * the `@`, so an address is all it takes to name one. DNS only adds: an error, an empty answer or a name that is missing
 * from one answer never takes a member away.
 */
export function dnsStrategy(options: {
  /** Own full name; its host part is an address. */
  self: string;
  query: string;
  pollingIntervalMs: number;
  resolve4: Resolve4;
  warn: DiscoveryWarning;
  /** Runs `task` every `ms` until the returned function is called. */
  every: (ms: number, task: () => void) => () => void;
}): Strategy {
  const at = options.self.indexOf('@');
  const name = options.self.slice(0, at);
  let stopped = false;
  let polling = false;
  let cancel: (() => void) | undefined;
  let lastProblem = '';

  async function poll(report: (nodes: readonly string[]) => void): Promise<void> {
    // A resolver slower than the interval must not pile up questions.
    if (polling) return;
    polling = true;
    try {
      const addresses = await options.resolve4(options.query);
      lastProblem = '';
      const nodes = addresses.map((address) => `${name}@${address}`).filter((node) => node !== options.self);
      if (!stopped && nodes.length > 0) report(nodes);
    } catch (error) {
      const problem = error instanceof ResolveError ? error.message : String(error);
      // Once per kind of trouble: at 3 a.m. nobody wants a line each five seconds.
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
      cancel = options.every(options.pollingIntervalMs, () => void poll(report));
      await poll(report);
    },
    stop() {
      stopped = true;
      cancel?.();
      cancel = undefined;
    },
  };
}
