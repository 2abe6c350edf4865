import type { Endpoint } from '../peer/peer-session.js';

/** Pause between two introductions for each person in the room: to introduce somebody takes a third of that. */
const PAUSE_PER_PERSON_MS = 0.1;
/** A shorter pause is not worth a timer: people join rooms of up to a hundred without one. */
const SHORTEST_PAUSE_MS = 10;

/** People who have joined a large room and whom the others are still to be told of, so that a rush is told at once. */
export class Newcomers {
  /** In order of joining; undefined for a peer that the others do not see. */
  #waiting = new Map<string, Endpoint | undefined>();
  #introducedAtMs = Number.NEGATIVE_INFINITY;

  /** Adds a peer that was shown everyone before it, and is visible to them if there is an endpoint. */
  add(peerId: string, endpoint: Endpoint | undefined): void {
    // Nobody hears that a hidden peer leaves, so it may still wait at its former place.
    this.#waiting.delete(peerId);
    if (endpoint !== undefined || this.#waiting.size > 0) this.#waiting.set(peerId, endpoint);
  }

  has(peerId: string): boolean {
    return this.#waiting.has(peerId);
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Returns the milliseconds until the newcomers of a room of `people` are to be introduced; 0 = now. */
  waitMs(people: number, nowMs: number): number {
    const leftMs = this.#introducedAtMs + people * PAUSE_PER_PERSON_MS - nowMs;

    return people * PAUSE_PER_PERSON_MS <= SHORTEST_PAUSE_MS ? 0 : Math.max(0, leftMs);
  }

  /** Returns a function with the newcomers that each peer does not know, and starts the next pause. */
  introduce(nowMs: number): (peerId: string) => Endpoint[] {
    const ids = [...this.#waiting.keys()];
    const endpoints = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#introducedAtMs = nowMs;
    const all = endpoints.filter((endpoint) => endpoint !== undefined);

    return (peerId) => {
      const at = ids.indexOf(peerId);

      return at < 0 ? all : endpoints.slice(at + 1).filter((endpoint) => endpoint !== undefined);
    };
  }
}
