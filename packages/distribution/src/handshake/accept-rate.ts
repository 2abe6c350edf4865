import { networkOf } from '@bloom/net';
import type { Clock } from '@bloom/time';

/** Addresses that nodes have connected from and that are remembered. */
const MAX_KNOWN = 1_024;
/** Connections per second from addresses that are not known, in units of what one address may open. */
const STRANGERS = 4;
/** Connections per second from one known address, in the same units. */
const KNOWN = 10;

/**
 * Limits how many connections are accepted per second: for each address, and in sum for all addresses from which no
 * node has ever proved to know the cookie. A flood therefore stops neither members nor newcomers from elsewhere.
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

  /** Counts one connection; false when it is one too many. */
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

  /** Remembers an address from which a node has proved itself. */
  know(remoteAddress: string): void {
    const address = networkOf(remoteAddress);
    this.#known.delete(address);
    this.#known.add(address);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known;
    this.#known.delete(oldest as string);
  }
}
