/** One direction of a bad network, without I/O: computes when a datagram arrives, if it does. */
export interface LinkOptions {
  /** Share of lost datagrams, 0..1. */
  loss?: number;
  delayMs?: number;
  /** The delay varies by up to this much in either direction; order is kept. */
  jitterMs?: number;
  /** Share of datagrams that are held back by `reorderMs`, so that later ones overtake them. */
  reorder?: number;
  reorderMs?: number;
  /** Bottleneck, bits per second. */
  rateBps?: number;
  /** Capacity of the bottleneck's queue, as time at its rate. */
  queueMs?: number;
}

export class Link {
  options: LinkOptions;
  delivered = 0;
  lost = 0;
  /** Dropped because the bottleneck's queue was full. */
  overflowed = 0;
  readonly #random: () => number;
  #busyUntilMs = 0;
  #lastArrivalMs = 0;

  /** `random` gives numbers in [0, 1); a seeded one makes a run repeatable. */
  constructor(options: LinkOptions, random: () => number) {
    this.options = options;
    this.#random = random;
  }

  /** Time of arrival of a datagram of `bytes` that is sent now; undefined when it is lost. */
  send(bytes: number, nowMs: number): number | undefined {
    const { loss = 0, delayMs = 0, jitterMs = 0, reorder = 0, reorderMs = 20, rateBps, queueMs = 200 } = this.options;
    if (this.#random() < loss) {
      this.lost += 1;
      return undefined;
    }
    let leavesMs = nowMs;
    if (rateBps !== undefined) {
      const startMs = Math.max(nowMs, this.#busyUntilMs);
      if (startMs - nowMs > queueMs) {
        this.overflowed += 1;
        return undefined;
      }
      // 28 bytes of IP and UDP header travel too.
      leavesMs = startMs + ((bytes + 28) * 8000) / rateBps;
      this.#busyUntilMs = leavesMs;
    }
    this.delivered += 1;
    const arrivesMs = leavesMs + Math.max(0, delayMs + (this.#random() * 2 - 1) * jitterMs);
    if (this.#random() < reorder) return arrivesMs + reorderMs;
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, arrivesMs);
    return this.#lastArrivalMs;
  }
}

/** A small seeded generator (mulberry32): not for secrets, only for repeatable runs. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
