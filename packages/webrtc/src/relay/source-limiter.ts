import { networkOf } from '@bloom/net';

interface SourceLimiterOptions {
  /** Answers that a source may draw at once. */
  burst: number;
  /** Answers that a source regains each second. */
  perSecond: number;
  /** Number of buckets; sources share them, so that memory stays constant. */
  buckets?: number;
}

/** A token bucket per source network in constant memory. Guards the only answer a stranger gets. */
export class SourceLimiter {
  readonly #options: SourceLimiterOptions;
  readonly #tokens: Float64Array;
  readonly #touchedMs: Float64Array;

  constructor(options: SourceLimiterOptions) {
    this.#options = options;
    const buckets = options.buckets ?? 4096;
    this.#tokens = new Float64Array(buckets).fill(options.burst);
    this.#touchedMs = new Float64Array(buckets);
  }

  /** Takes one token of the source's network; false when it has none left. */
  take(address: string, nowMs: number): boolean {
    const slot = hash(networkOf(address)) % this.#tokens.length;
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

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
