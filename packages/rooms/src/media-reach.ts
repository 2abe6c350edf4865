import type { MediaEndpoint } from '@bloom/sfu';
import type { MediaMeasure } from './room/media-journal.js';

/** Number of people that a report covers, newest first. */
const MAX_PEOPLE = 100;

/** How many of the latest people reached the media ports of this node. */
export interface Reach {
  people: number;
  unreached: number;
  /** `3 of the last 20 people never reached 203.0.113.7:50000-50003/udp`; absent when everybody did. */
  note?: string;
}

/** Remembers which of the latest people ever reached the media ports of this node. */
export class MediaReach {
  /** By peer: the endpoint that the person never reached, or undefined once reached. Newest last. */
  readonly #people = new Map<string, MediaEndpoint | undefined>();

  record({ peerId, outcome, path, problem, endpoint }: MediaMeasure): void {
    const reached = outcome === 'connected' || path !== 'none' || problem !== 'NO_CHECKS';
    // A later failure does not undo that the person got through before.
    if (!reached && this.#people.has(peerId)) return;
    this.#people.delete(peerId);
    this.#people.set(peerId, reached ? undefined : endpoint);
    if (this.#people.size > MAX_PEOPLE)
      for (const oldest of this.#people.keys()) return void this.#people.delete(oldest);
  }

  get summary(): Reach {
    const missed = [...this.#people.values()].filter((endpoint) => endpoint !== undefined);
    const people = this.#people.size;
    if (missed.length === 0) return { people, unreached: 0 };
    const addresses = new Set(missed.flatMap(addressesOf));
    const ports = missed.map(({ port }) => port);
    const [min, max] = [Math.min(...ports), Math.max(...ports)];
    const range = min === max ? `${min}` : `${min}-${max}`;
    const where = [...addresses].map((each) => `${each.includes(':') ? `[${each}]` : each}:${range}/udp`).join(' and ');

    return {
      people,
      unreached: missed.length,
      note: `${missed.length} of the last ${people} people never reached ${where}`,
    };
  }
}

function addressesOf({ address, secondAddress, moreAddresses = [] }: MediaEndpoint): string[] {
  return [address, ...(secondAddress === undefined ? [] : [secondAddress]), ...moreAddresses];
}
