/** From capture to canvas: what the network, the jitter buffers and the decoders may take. */
export const PLAYOUT_MS = 200;

/** The fastest frame of so long tells the shortest way; after that again, since clocks drift. */
const WINDOW_MS = 15_000;
const SHORT_WINDOW_MS = 500;
/** When even the fastest frames come this much later than they used to, the way has become longer. */
const LONGER_WAY_MS = PLAYOUT_MS / 2;
/** Times that differ by more are of another clock: the publisher has set it, or is another machine now. */
const SAME_CLOCK_MS = 1_000;

/** The least of what came in the last one to two windows. */
class RecentLeast {
  readonly #windowMs: number;
  #current = Number.POSITIVE_INFINITY;
  #former = Number.POSITIVE_INFINITY;
  #endMs = Number.NEGATIVE_INFINITY;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get value(): number {
    return Math.min(this.#current, this.#former);
  }

  add(value: number, nowMs: number): void {
    if (nowMs >= this.#endMs) {
      // After a pause nothing is recent.
      this.#former = nowMs < this.#endMs + this.#windowMs ? this.#current : Number.POSITIVE_INFINITY;
      this.#current = Number.POSITIVE_INFINITY;
      this.#endMs = nowMs + this.#windowMs;
    }
    this.#current = Math.min(this.#current, value);
  }

  set(value: number, nowMs: number): void {
    this.#former = Number.POSITIVE_INFINITY;
    this.#current = value;
    this.#endMs = nowMs + this.#windowMs;
  }
}

/**
 * A clock that is only known by times that arrive with some delay, set against our own by those that were fastest. The
 * shortest way counts as none.
 */
export class FarClock {
  readonly #patienceMs: number;
  readonly #least = new RecentLeast(WINDOW_MS);
  readonly #leastNow = new RecentLeast(SHORT_WINDOW_MS);
  #agreedAtMs = Number.NEGATIVE_INFINITY;

  /** `patienceMs`: times of another clock are not believed before this one has said nothing for so long. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /**
   * What came at `nowMs` of our clock says that it was of `farMs` there. Returns when that was, by our clock; undefined when
   * this is not believed.
   */
  heard(farMs: number, nowMs: number): number | undefined {
    const behind = nowMs - farMs;
    const known = this.#least.value;
    if (known !== Number.POSITIVE_INFINITY && Math.abs(behind - known) > SAME_CLOCK_MS) {
      if (nowMs - this.#agreedAtMs < this.#patienceMs) return undefined;
      this.#least.set(behind, nowMs);
      this.#leastNow.set(behind, nowMs);
    }
    this.#agreedAtMs = nowMs;
    this.#least.add(behind, nowMs);
    this.#leastNow.add(behind, nowMs);
    if (this.#leastNow.value - this.#least.value > LONGER_WAY_MS) this.#least.set(this.#leastNow.value, nowMs);

    return farMs + this.#least.value;
  }
}

/** The clock of a publisher, as the sender reports of its tracks tell it. A track that is wrong about it does not decide. */
export const publisherClock = (): FarClock => new FarClock(2_000);

export interface TimedUnit {
  /** Ticks of the codec's clock. */
  timestamp: number;
  /** When it was captured by the publisher's clock, ms; absent before the publisher's first sender report. */
  senderMs?: number;
}

/**
 * When the frames of one track were captured, on the compositor's clock. Tracks of one publisher share its clock, which its
 * sender reports tell; so voice and lips stay together whatever the network does to either. Until the first report the
 * fastest frame of the track counts as one that took no time.
 */
export class TrackTiming {
  readonly #publisher: FarClock;
  readonly #clockRate: number;
  readonly #own = new FarClock(0);

  constructor(publisher: FarClock, clockRate: number) {
    this.#publisher = publisher;
    this.#clockRate = clockRate;
  }

  capturedMs({ timestamp, senderMs }: TimedUnit, nowMs: number): number {
    const own = this.#own.heard((timestamp * 1_000) / this.#clockRate, nowMs) ?? nowMs;
    const told = senderMs === undefined ? undefined : this.#publisher.heard(senderMs, nowMs);

    // What would be too late to be shown was not captured then: the report is out of date.
    return told === undefined || own - told > PLAYOUT_MS ? own : told;
  }
}
