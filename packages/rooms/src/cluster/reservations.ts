import type { Clock } from '@bloom/time';
import { compareLoad, type Load } from './load.js';

/** Lifetime of a reservation whose requester has disappeared. */
const LIFETIME_MS = 5000;
/** Maximum number of reservations: a greedy member can neither fill memory nor slow down every expiry. */
const MAX_RESERVATIONS = 1_000;

export type ReserveAnswer = { granted: string } | { refused: Load & { draining: boolean } };

/**
 * Rooms that were promised but do not exist yet. They count as load immediately, so a burst cannot land on one node.
 */
export class Reservations {
  readonly #load: () => Load;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #newId: () => string;
  readonly #expiries = new Map<string, number>();

  /** `load` returns the load of the existing rooms. */
  constructor(load: () => Load, clock: Pick<Clock, 'now'>, newId: () => string) {
    this.#load = load;
    this.#clock = clock;
    this.#newId = newId;
  }

  get size(): number {
    this.#expire();
    return this.#expiries.size;
  }

  load(): Load {
    this.#expire();
    const { forwardedTracks, rooms } = this.#load();
    return { forwardedTracks, rooms: rooms + this.#expiries.size };
  }

  /** Grants a reservation unless this node has become busier than the `seen` load that it reported. */
  reserve(seen: Load, draining: boolean): ReserveAnswer {
    const load = this.load();
    const isFull = this.#expiries.size >= MAX_RESERVATIONS;
    if (isFull || draining || compareLoad(load, seen) > 0) return { refused: { ...load, draining } };
    const id = this.#newId();
    this.#expiries.set(id, this.#clock.now() + LIFETIME_MS);
    return { granted: id };
  }

  /** Ends a reservation when its room is created. Returns false when it has expired. */
  release(id: string): boolean {
    this.#expire();
    return this.#expiries.delete(id);
  }

  #expire(): void {
    const now = this.#clock.now();
    // All reservations have the same lifetime, so the oldest come first.
    for (const [id, expiry] of this.#expiries) {
      if (expiry > now) break;
      this.#expiries.delete(id);
    }
  }
}
