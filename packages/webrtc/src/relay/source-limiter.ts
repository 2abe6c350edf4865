import { randomInt } from 'node:crypto';
import { networkOf } from '@bloom/net';

interface SourceLimiterOptions {
  /** Number of answers that a source may draw at once. */
  burst: number;
  /** Number of answers that a source regains per second. */
  perSecond: number;
  /** Number of buckets. Sources share buckets, so memory stays constant. */
  buckets?: number;
  /** 32-bit seed that maps networks to buckets. Random by default, so that an attacker cannot pick its neighbours. */
  seed?: number;
}

/** A token bucket per source network in constant memory. Limits the only answer that strangers get. */
export class SourceLimiter {
  readonly #options: SourceLimiterOptions;
  readonly #tokens: Float64Array;
  readonly #touchedMs: Float64Array;
  readonly #seed: number;

  constructor(options: SourceLimiterOptions) {
    this.#options = options;
    const buckets = options.buckets ?? 4096;
    this.#tokens = new Float64Array(buckets).fill(options.burst);
    this.#touchedMs = new Float64Array(buckets);
    this.#seed = options.seed ?? randomInt(2 ** 32);
  }

  /** Takes one token of the source's network. Returns false when none is left. */
  take(address: string, nowMs: number): boolean {
    const slot = hash(networkOf(address), this.#seed) % this.#tokens.length;
    const elapsedMs = Math.max(0, nowMs - (this.#touchedMs[slot] ?? 0));
    const tokens = Math.min(
      this.#options.burst,
      (this.#tokens[slot] ?? 0) + (elapsedMs * this.#options.perSecond) / 1000,
    );
    this.#touchedMs[slot] = nowMs;
    this.#tokens[slot] = tokens >= 1 ? tokens - 1 : tokens;
    return tokens >= 1;
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
