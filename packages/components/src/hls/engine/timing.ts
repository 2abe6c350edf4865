/** Delay from capture to canvas. Covers network, jitter buffers and decoders. */
export const PLAYOUT_MS = 200;

/** Window whose fastest frame determines the delay. Windows are renewed because clocks drift. */
const WINDOW_MS = 15_000;
const SHORT_WINDOW_MS = 500;
/** When even the fastest frames arrive this much later than before, the path has become longer. */
const LONGER_WAY_MS = PLAYOUT_MS / 2;
/**
 * Times further apart than this come from different clocks: the publisher set its clock or moved to another machine.
 */
const SAME_CLOCK_MS = 1_000;

/** Minimum over the last one to two windows. */
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
      // After a pause, no earlier value is recent.
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
 * A remote clock known only from times that arrive with a delay. It is aligned with the local clock by the fastest of
 * them, whose delay counts as zero.
 */
export class FarClock {
  readonly #patienceMs: number;
  readonly #least = new RecentLeast(WINDOW_MS);
  readonly #leastNow = new RecentLeast(SHORT_WINDOW_MS);
  #agreedAtMs = Number.NEGATIVE_INFINITY;

  /** Times from another clock are ignored until this clock has been silent for `patienceMs`. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Converts a remote time received at local time `nowMs` to local time. Returns undefined when it is implausible. */
  localTimeOf(farMs: number, nowMs: number): number | undefined {
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

/** Returns a publisher's clock, set by the sender reports of its tracks. A single wrong track does not change it. */
export const publisherClock = (): FarClock => new FarClock(2_000);

export interface TimedUnit {
  /** Ticks of the codec's clock. */
  timestamp: number;
  /** Capture time on the publisher's clock in ms; absent before the publisher's first sender report. */
  senderMs?: number;
}

/**
 * Capture times of one track's frames on the compositor's clock. Tracks of one publisher share its clock, known from
 * sender reports, so audio and video stay in sync whatever the network does. Before the first report, the fastest frame
 * counts as undelayed.
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
    const own = this.#own.localTimeOf((timestamp * 1_000) / this.#clockRate, nowMs) ?? nowMs;
    const reported = senderMs === undefined ? undefined : this.#publisher.localTimeOf(senderMs, nowMs);

    // A capture time too late to be shown is wrong: the report is outdated.
    return reported === undefined || own - reported > PLAYOUT_MS ? own : reported;
  }
}
