import type { CloseReason } from '../link/link.js';
import type { ClusterEvent, NodeDown, NodeUp } from './link-state.js';

/** Maximum number of remembered events. */
const KEPT = 500;
/** Maximum number of lost members remembered, to distinguish a healed split from a restart. */
const MAX_LOST = 1_000;

/** Reasons for the end of a connection to a node that may still be alive. */
const SPLITS: ReadonlySet<CloseReason> = new Set<CloseReason>(['net_tick_timeout', 'slow_peer', 'cut']);

/** Records the events of members as this node saw them. */
export class ClusterEvents {
  readonly #now: () => number;
  readonly #ring: ClusterEvent[] = [];
  readonly #listeners = new Set<(event: ClusterEvent) => void>();
  readonly #creations = new Map<string, number>();
  readonly #lost = new Map<string, { creation: number; at: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the latest events, oldest first. */
  last(limit = KEPT): ClusterEvent[] {
    return limit <= 0 ? [] : this.#ring.slice(-limit);
  }

  /** Returns a function that unsubscribes. A listener that throws is not called again. */
  subscribe(listener: (event: ClusterEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  up({ node, creation }: Omit<NodeUp, 'kind'>): void {
    this.#creations.set(node, creation);
    const lost = this.#lost.get(node);
    this.#lost.delete(node);
    if (lost?.creation === creation) {
      this.add('healed', node, `apart for ${((this.#now() - lost.at) / 1_000).toFixed(1)} s`);
    } else this.add('up', node, '');
  }

  down({ node, reason }: Omit<NodeDown, 'kind'>): void {
    const creation = this.#creations.get(node);
    this.#creations.delete(node);
    if (creation !== undefined && reason !== 'leave' && reason !== 'disconnect') {
      if (this.#lost.size >= MAX_LOST) this.#lost.clear();
      this.#lost.set(node, { creation, at: this.#now() });
    }
    this.add(SPLITS.has(reason) ? 'split' : 'down', node, reason);
  }

  add(event: ClusterEvent['event'], node: string, detail: string): void {
    const entry: ClusterEvent = { at: this.#now(), event, node, detail };
    this.#ring.push(entry);
    if (this.#ring.length > KEPT) this.#ring.shift();
    for (const listener of this.#listeners) {
      try {
        listener(entry);
      } catch {
        this.#listeners.delete(listener);
      }
    }
  }
}
