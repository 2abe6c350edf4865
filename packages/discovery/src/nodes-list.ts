import type { Strategy } from './strategy.js';

/**
 * Reports the names of a fixed list, once. They are seeds: the membership mesh retries missing ones forever. All nodes
 * may share one list, because each ignores its own name.
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
