import type { DiscoveryWarning, Strategy } from './strategy.js';

/**
 * The names of a fixed list, once. They are seeds: the membership mesh retries those that are missing for ever.
 * Every instance may share one list, because the own name is ignored.
 */
export function nodesList(options: { self: string; nodes: readonly string[]; warn: DiscoveryWarning }): Strategy {
  let stopped = false;
  return {
    async start(report) {
      const others = options.nodes.filter((node) => node !== options.self);
      if (options.nodes.length === 0) {
        options.warn('discovery.list-empty', {
          hint: 'JF_DIST_NODES is empty: at least one instance of the cluster needs it',
        });
      }
      if (!stopped && others.length > 0) report(others);
    },
    stop() {
      stopped = true;
    },
  };
}
