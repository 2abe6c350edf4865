import { randomUUID } from 'node:crypto';
import type { Load } from './load.js';
import { compareLoad } from './load.js';

/** A reservation whose asker is never heard of again counts no longer than this. */
const LIFETIME_MS = 5000;

export type ReserveAnswer = { granted: string } | { refused: Load & { draining: boolean } };

/** Rooms that are promised but not yet there. They count as load at once, so that a burst cannot land on one node. */
export class Reservations {
  readonly #load: () => Load;
  readonly #now: () => number;
  readonly #expiries = new Map<string, number>();

  /** `load`: of the rooms that are there. */
  constructor(load: () => Load, now: () => number) {
    this.#load = load;
    this.#now = now;
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

  /** Granted unless this node is busier by now than it was when it said `seen`. */
  reserve(seen: Load, draining: boolean): ReserveAnswer {
    const load = this.load();
    if (draining || compareLoad(load, seen) > 0) return { refused: { ...load, draining } };
    const id = randomUUID();
    this.#expiries.set(id, this.#now() + LIFETIME_MS);
    return { granted: id };
  }

  /** The room is there now, or will never be. False when the reservation is over: its asker gave up, or took too long. */
  release(id: string): boolean {
    this.#expire();
    return this.#expiries.delete(id);
  }

  #expire(): void {
    const now = this.#now();
    for (const [id, expiry] of this.#expiries) if (expiry <= now) this.#expiries.delete(id);
  }
}
