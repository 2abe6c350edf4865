import { networkOf } from '@bloom/net';
import type { Clock } from '@bloom/time';

/** Maximum number of remembered addresses from which nodes have connected. */
const MAX_KNOWN = 1_024;
/** Connections per second from all unknown addresses, in multiples of the limit for one address. */
const STRANGERS = 4;
/** Connections per second from one known address, in the same multiples. */
const KNOWN = 10;

/**
 * Limits the accepted connections per second: for each address, and in total for all addresses from which no node has
 * ever proved that it knows the cookie. A flood therefore stops neither members nor newcomers from elsewhere.
 */
export class AcceptRate {
  readonly #clock: Clock;
  readonly #maxPerSecond: number;
  /** Oldest first. */
  readonly #known = new Set<string>();
  readonly #accepted = new Map<string, number>();
  #second = 0;
  #strangers = 0;

  constructor(clock: Clock, maxPerSecond: number) {
    this.#clock = clock;
    this.#maxPerSecond = maxPerSecond;
  }

  /** Counts a connection. Returns false when it exceeds the limit. */
  take(remoteAddress: string): boolean {
    const address = networkOf(remoteAddress);
    const second = Math.floor(this.#clock.now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#strangers = 0;
      this.#accepted.clear();
    }
    const known = this.#known.has(address);
    if (!known && this.#strangers >= STRANGERS * this.#maxPerSecond) return false;

    const accepted = this.#accepted.get(address) ?? 0;
    if (accepted >= (known ? KNOWN : 1) * this.#maxPerSecond) return false;
    this.#accepted.set(address, accepted + 1);
    if (!known) this.#strangers += 1;
    return true;
  }

  isKnown(remoteAddress: string): boolean {
    return this.#known.has(networkOf(remoteAddress));
  }

  /** Remembers an address from which a node has authenticated. */
  know(remoteAddress: string): void {
    const address = networkOf(remoteAddress);
    this.#known.delete(address);
    this.#known.add(address);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known;
    this.#known.delete(oldest as string);
  }
}
