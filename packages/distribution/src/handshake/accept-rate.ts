import { networkOf } from '@bloom/net';
import { Allowance, type Clock } from '@bloom/time';

/** Maximum number of remembered addresses from which nodes have connected. */
const MAX_KNOWN = 1_024;
/** Connections from all unknown addresses, in multiples of the limit for one address. */
const STRANGERS = 4;
/** Connections from one known address, in the same multiples. */
const KNOWN = 10;
/** A bucket holds what it regains in a second, so after a second it is full and can be forgotten. */
const FULL_AGAIN_MS = 1_000;

/**
 * Limits the accepted connections per second: for each address, and in total for all addresses from which no node has
 * ever proved that it knows the cookie. A flood therefore stops neither members nor newcomers from elsewhere.
 */
export class AcceptRate {
  readonly #clock: Clock;
  readonly #maxPerSecond: number;
  /** Oldest first. */
  readonly #known = new Map<string, Allowance>();
  /** Unknown addresses, each of which has cost the strangers a token within the last two seconds. */
  readonly #unknown = new Map<string, Allowance>();
  readonly #strangers: Allowance;
  #sweptAtMs = 0;

  constructor(clock: Clock, maxPerSecond: number) {
    this.#clock = clock;
    this.#maxPerSecond = maxPerSecond;
    this.#strangers = this.#allowance(STRANGERS);
  }

  /** Counts a connection. Returns false when it exceeds the limit. */
  take(remoteAddress: string): boolean {
    const address = networkOf(remoteAddress);
    const now = this.#clock.now();
    const known = this.#known.get(address);
    if (known !== undefined) return known.take(now);
    if (this.#strangers.left(now) < 1) return false;

    this.#sweep(now);
    const own = this.#unknown.get(address) ?? this.#allowance(1);
    this.#unknown.set(address, own);
    return own.take(now) && this.#strangers.take(now);
  }

  isKnown(remoteAddress: string): boolean {
    return this.#known.has(networkOf(remoteAddress));
  }

  /** Remembers an address from which a node has authenticated. */
  know(remoteAddress: string): void {
    const address = networkOf(remoteAddress);
    const allowance = this.#known.get(address) ?? this.#allowance(KNOWN);
    this.#known.delete(address);
    this.#known.set(address, allowance);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest as string);
  }

  #allowance(multiple: number): Allowance {
    return new Allowance({ burst: multiple * this.#maxPerSecond, perSecond: multiple * this.#maxPerSecond });
  }

  /** Forgets the addresses whose whole burst is available again. */
  #sweep(now: number): void {
    if (now - this.#sweptAtMs < FULL_AGAIN_MS) return;
    this.#sweptAtMs = now;
    for (const [address, allowance] of this.#unknown)
      if (allowance.left(now) >= this.#maxPerSecond) this.#unknown.delete(address);
  }
}
