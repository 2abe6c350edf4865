import type { TappedFrame } from '@bloom/sfu';

/** Frames this much later than their timestamps follow either a pause of the publisher or a stall of the network. */
const MISSING_MS = 500;
/** Frames held back by the network arrive together within this time. */
const WATCH_MS = 300;
const MAX_HELD = 64;

export interface JudgedFrame {
  frame: TappedFrame;
  /** True when the track paused before this frame and its timestamps stood still, as for a muted microphone. */
  afterPause: boolean;
}

/**
 * Tells a pause of the publisher from a stall of the network, which look the same at first, by holding the frames after
 * a gap until it is clear whether the track is catching up.
 */
export class PauseJudge {
  readonly #clockRate: number;
  #last: TappedFrame | undefined;
  #held: TappedFrame[] = [];
  #missingMs = 0;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  /** Returns the frames decided so far, in order. */
  push(frame: TappedFrame): JudgedFrame[] {
    const before = this.#last;
    this.#last = frame;
    if (this.#held.length > 0) {
      this.#held.push(frame);
      const first = this.#held[0]!;
      const watchedMs = frame.arrivalMs - first.arrivalMs;
      return watchedMs >= WATCH_MS || this.#held.length >= MAX_HELD ? this.flush() : [];
    }
    this.#missingMs = before === undefined ? 0 : -this.#gain(before, frame);
    if (this.#missingMs <= MISSING_MS) return [{ frame, afterPause: false }];
    this.#held = [frame];

    return [];
  }

  /** Returns the frames still held; called at the end. */
  flush(): JudgedFrame[] {
    const held = this.#held;
    this.#held = [];
    const [first] = held;
    if (first === undefined) return [];
    const hasCaughtUp = this.#gain(first, held.at(-1)!) > this.#missingMs / 2;

    return held.map((frame, i) => ({ frame, afterPause: i === 0 && !hasCaughtUp }));
  }

  /** Returns by how many ms the timestamps are ahead of the arrivals. */
  #gain(from: TappedFrame, to: TappedFrame): number {
    return ((to.timestamp - from.timestamp) * 1_000) / this.#clockRate - (to.arrivalMs - from.arrivalMs);
  }
}
