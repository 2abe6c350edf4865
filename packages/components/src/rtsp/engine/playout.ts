/** Frames are released this long after the fastest ones could have been, which hides that much jitter. */
const PLAYOUT_MS = 120;
/** Delay is measured by the fastest frame of this window and the last, so that slow clocks are followed. */
const WINDOW_MS = 10_000;
/** A stream waits at most this long for a slower one; a larger difference is a fault of the source. */
const MAX_SKEW_MS = 300;
/** A frame this far ahead of its time comes from a clock that was set. */
const MAX_AHEAD_MS = 1_000;
/** Receivers treat frames with the same time as one frame. */
const MIN_STEP_MS = 1;
/** Limit for waiting frames; beyond it, frames are released early. */
const MAX_WAITING = 1_024;

interface TimedFrame<T> {
  stream: number;
  /** Time on the source's clock; undefined when it gives none. */
  ptsMs: number | undefined;
  frame: T;
}

interface ReleasedFrame<T> {
  stream: number;
  /** Time in ms on the timeline shared by all streams, increasing within each of them. */
  timeMs: number;
  /** When the frame was due on our clock, in ms. */
  dueMs: number;
  frame: T;
}

/**
 * Smooths the arrival of a source's frames: each is released when its time has come, `PLAYOUT_MS` after the earliest
 * moment at which its stream or a slower one could have had it. Late frames are released immediately with their own
 * times, so that sound and picture stay in sync. Has no timers or clock: the caller passes the time, and calls again
 * after `waitMs`.
 */
export class Playout<T> {
  readonly #streams = new Map<number, StreamTime>();
  /** Sorted by due time; frames of one stream keep their order. */
  readonly #waiting: ReleasedFrame<T>[] = [];

  push({ stream: id, ptsMs, frame }: TimedFrame<T>, nowMs: number): void {
    const stream = this.#streams.get(id) ?? this.#open(id, ptsMs ?? 0, nowMs);
    const timeMs = stream.timeOf(
      ptsMs,
      () => this.#shiftFor(ptsMs ?? 0, nowMs, [stream.shiftMs]),
      nowMs - this.#offset(nowMs),
    );
    stream.measure(nowMs - timeMs, nowMs);
    const dueMs = timeMs + this.#offset(nowMs) + PLAYOUT_MS;
    let place = this.#waiting.length;
    while (place > 0 && this.#waiting[place - 1]!.stream !== id && this.#waiting[place - 1]!.dueMs > dueMs) place--;
    this.#waiting.splice(place, 0, { stream: id, timeMs, dueMs, frame });
  }

  /** Returns the frames whose time has come, in order. */
  take(nowMs: number): ReleasedFrame<T>[] {
    let count = Math.max(0, this.#waiting.length - MAX_WAITING);
    while (count < this.#waiting.length && this.#waiting[count]!.dueMs <= nowMs) count++;

    return this.#waiting.splice(0, count);
  }

  /** Milliseconds until the next frame is due; undefined when none is waiting. */
  waitMs(nowMs: number): number | undefined {
    const next = this.#waiting[0];

    return next === undefined ? undefined : Math.max(0, next.dueMs - nowMs);
  }

  /**
   * Offset of our clock from the timeline, according to the fastest frames of the slowest stream. NaN before the first
   * frame.
   */
  #offset(nowMs: number): number {
    let fastest = Number.POSITIVE_INFINITY;
    let slowest = Number.NEGATIVE_INFINITY;
    for (const stream of this.#streams.values()) {
      const offsetMs = stream.offsetMs(nowMs);
      if (offsetMs === undefined) continue;
      fastest = Math.min(fastest, offsetMs);
      slowest = Math.max(slowest, offsetMs);
    }

    return fastest === Number.POSITIVE_INFINITY ? Number.NaN : Math.min(slowest, fastest + MAX_SKEW_MS);
  }

  #open(id: number, ptsMs: number, nowMs: number): StreamTime {
    const stream = new StreamTime(this.#shiftFor(ptsMs, nowMs, [0]));
    this.#streams.set(id, stream);

    return stream;
  }

  /** Prefers a shift already used by another stream, since the streams of a source share its clock. */
  #shiftFor(ptsMs: number, nowMs: number, known: number[]): number {
    const expectedMs = nowMs - this.#offset(nowMs);
    if (Number.isNaN(expectedMs)) return known[0]!;
    const candidates = [...known, ...[...this.#streams.values()].map(({ shiftMs }) => shiftMs)];

    return candidates.find((shiftMs) => Math.abs(ptsMs + shiftMs - expectedMs) <= MAX_AHEAD_MS) ?? expectedMs - ptsMs;
  }
}

/** Times of one stream. */
class StreamTime {
  /** Offset added to the source's times, which jump when its clock is set. */
  shiftMs: number;
  #lastPtsMs = Number.NEGATIVE_INFINITY;
  #lastTimeMs = Number.NEGATIVE_INFINITY;
  #windowEndMs = Number.NEGATIVE_INFINITY;
  #thisWindowMs = Number.POSITIVE_INFINITY;
  #lastWindowMs = Number.POSITIVE_INFINITY;

  constructor(shiftMs: number) {
    this.shiftMs = shiftMs;
  }

  /** Returns a frame's time on the timeline. `shiftFor` returns the new shift after the source's clock was set. */
  timeOf(ptsMs: number | undefined, shiftFor: () => number, expectedMs: number): number {
    // The first frame of a connection may come without a time.
    const givenMs = ptsMs ?? Math.max(this.#lastPtsMs, 0);
    if (givenMs < this.#lastPtsMs || givenMs + this.shiftMs > expectedMs + MAX_AHEAD_MS) this.shiftMs = shiftFor();
    this.#lastPtsMs = givenMs;
    this.#lastTimeMs = Math.max(givenMs + this.shiftMs, this.#lastTimeMs + MIN_STEP_MS);

    return this.#lastTimeMs;
  }

  /** Records how long after its time a frame arrived. */
  measure(offsetMs: number, nowMs: number): void {
    if (nowMs >= this.#windowEndMs) {
      this.#lastWindowMs = nowMs < this.#windowEndMs + WINDOW_MS ? this.#thisWindowMs : Number.POSITIVE_INFINITY;
      this.#thisWindowMs = Number.POSITIVE_INFINITY;
      this.#windowEndMs = nowMs + WINDOW_MS;
    }
    this.#thisWindowMs = Math.min(this.#thisWindowMs, offsetMs);
  }

  /** Returns the smallest recent offset; undefined when the stream has been silent. */
  offsetMs(nowMs: number): number | undefined {
    if (nowMs >= this.#windowEndMs + WINDOW_MS) return undefined;

    return Math.min(this.#thisWindowMs, this.#lastWindowMs);
  }
}
