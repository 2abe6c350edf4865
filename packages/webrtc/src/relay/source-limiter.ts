import { randomInt } from 'node:crypto';
import { networkOf } from '@bloom/net';
import { Allowance, type Rate } from '@bloom/time';

/** A rate of answers for each source. */
interface SourceLimiterOptions extends Rate {
  /** Number of buckets. Sources share buckets, so memory stays constant. */
  buckets?: number;
  /** 32-bit seed that maps networks to buckets. Random by default, so that an attacker cannot pick its neighbours. */
  seed?: number;
}

/** An allowance per source network, in constant memory. Limits the only answer that strangers get. */
export class SourceLimiter {
  readonly #options: SourceLimiterOptions;
  /** Empty where no network of the bucket has been seen. */
  readonly #buckets: (Allowance | undefined)[];
  readonly #seed: number;

  constructor(options: SourceLimiterOptions) {
    this.#options = options;
    this.#buckets = Array.from({ length: options.buckets ?? 4096 });
    this.#seed = options.seed ?? randomInt(2 ** 32);
  }

  /** Takes one token of the source's network. Returns false when none is left. */
  take(address: string, nowMs: number): boolean {
    const slot = hash(networkOf(address), this.#seed) % this.#buckets.length;
    const bucket = (this.#buckets[slot] ??= new Allowance(this.#options));

    return bucket.take(nowMs);
  }
}

/** FNV-1a with a seed, then the final mix of MurmurHash3, which spreads all bits over the low ones. */
function hash(text: string, seed: number): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
