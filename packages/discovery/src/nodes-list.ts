import type { Strategy } from './strategy.js';

/**
 * The names of a fixed list, once. They are seeds: the membership mesh retries those that are missing for ever.
 * Every instance may share one list, because the own name is ignored.
 */
export function nodesList(options: { self: string; nodes: readonly string[] }): Strategy {
  let stopped = false;
  return {
    async start(report) {
      const others = options.nodes.filter((node) => node !== options.self);
      if (!stopped && others.length > 0) report(others);
    },
    stop() {
      stopped = true;
    },
  };
}
