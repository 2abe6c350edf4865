/** One direction of a bad network, without I/O: computes whether and when a datagram arrives. */
export interface LinkOptions {
  /** Share of lost datagrams, 0 to 1. */
  loss?: number;
  delayMs?: number;
  /** Maximum variation of the delay in either direction. Order is kept. */
  jitterMs?: number;
  /** Share of datagrams delayed by `reorderMs`, so that later ones overtake them. */
  reorder?: number;
  reorderMs?: number;
  /** Rate of the bottleneck, in bits per second. */
  rateBps?: number;
  /** Capacity of the bottleneck's queue, as time at its rate. */
  queueMs?: number;
}

export class Link {
  options: LinkOptions;
  delivered = 0;
  lost = 0;
  /** Number dropped because the bottleneck's queue was full. */
  overflowed = 0;
  readonly #random: () => number;
  #busyUntilMs = 0;
  #lastArrivalMs = 0;

  /** `random` returns numbers in [0, 1). A seeded one makes a run repeatable. */
  constructor(options: LinkOptions, random: () => number) {
    this.options = options;
    this.#random = random;
  }

  /** Returns the arrival time of a datagram of `bytes` sent now, or undefined if it is lost. */
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
      // 28 bytes of IP and UDP headers travel too.
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

/** A small seeded generator (mulberry32), for repeatable runs only, not for secrets. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
