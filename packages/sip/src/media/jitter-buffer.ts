/** Reorders a stream's frames by RFC 3550 sequence number and returns one every 20 ms. */

export interface JitterBufferOptions {
  /** Frames buffered before playback starts: 3 frames are 60 ms. */
  targetFrames: number;
  /** Beyond this the oldest frames are dropped: delay is worse than a gap. */
  maxFrames: number;
}

export interface JitterStats {
  played: number;
  /** Frames due but not received. */
  missing: number;
  /** Frames that arrived after their turn, or twice. */
  late: number;
  /** Frames dropped to limit the delay. */
  dropped: number;
}

/**
 * A jump further ahead means that the sender restarted. So does one further back if a second packet follows it, because
 * a single one is merely very late (RFC 3550, appendix A.1).
 */
const MAX_AHEAD = 1000;
const MAX_BEHIND = 100;
/** Pops between two drift checks: one second. */
const DRIFT_WINDOW = 50;

export class JitterBuffer<T> {
  readonly #options: JitterBufferOptions;
  readonly #frames = new Map<number, T>();
  readonly stats: JitterStats = { played: 0, missing: 0, late: 0, dropped: 0 };
  /** Next sequence number to play; undefined before the first frame. */
  #next: number | undefined;
  #filling = true;
  /** The last packet from far back. */
  #stray: { sequence: number; frame: T } | undefined;
  #gap = 0;
  /** Fewest buffered frames in the current window. */
  #lowest = Number.POSITIVE_INFINITY;
  #pops = 0;

  constructor(options: JitterBufferOptions = { targetFrames: 3, maxFrames: 12 }) {
    this.#options = options;
  }

  get depth(): number {
    return this.#frames.size;
  }

  /** Takes a frame with its 16-bit sequence number. */
  push(sequence: number, frame: T): void {
    if (this.#next === undefined) this.#next = sequence;
    const ahead = distance(this.#next, sequence);
    if (ahead > MAX_AHEAD) {
      this.reset();
      this.#next = sequence;
    } else if (ahead < -MAX_BEHIND) {
      const stray = this.#stray;
      if (stray === undefined || distance(stray.sequence, sequence) !== 1) {
        this.#stray = { sequence, frame };
        this.stats.late += 1;
        return;
      }
      this.reset();
      this.#next = stray.sequence;
      this.#frames.set(stray.sequence, stray.frame);
    } else if (ahead < 0) {
      // Before the first frame is played, an earlier frame moves the start.
      if (this.#filling && this.stats.played === 0 && this.#frames.size > 0) this.#next = sequence;
      else {
        this.stats.late += 1;
        return;
      }
    }
    if (this.#frames.has(sequence)) {
      this.stats.late += 1;
      return;
    }
    this.#frames.set(sequence, frame);
    while (this.#frames.size > this.#options.maxFrames) this.#dropOldest();
  }

  /** Returns the frame whose turn it is; undefined when it is missing. */
  pop(): T | undefined {
    this.#drift();
    if (this.#next === undefined) return undefined;
    if (this.#filling) {
      if (this.#frames.size < this.#options.targetFrames) return undefined;
      this.#filling = false;
      // The missing frames before them have had their time; waiting for them would only add delay.
      this.#next = this.#oldest() ?? this.#next;
    }
    const frame = this.#frames.get(this.#next);
    if (frame !== undefined) {
      this.#frames.delete(this.#next);
      this.#advance();
      this.#gap = 0;
      this.stats.played += 1;
      return frame;
    }
    this.stats.missing += 1;
    this.#gap += 1;
    if (this.#frames.size === 0) {
      // Empty: keep the turn, so that a late frame is still played. Refill after a long silence.
      if (this.#gap >= this.#options.targetFrames) this.#filling = true;
    } else this.#advance();
    return undefined;
  }

  /** Drops the buffered frames; the next frame starts over. */
  reset(): void {
    this.#frames.clear();
    this.#stray = undefined;
    this.#next = undefined;
    this.#filling = true;
    this.#gap = 0;
  }

  #advance(): void {
    this.#next = ((this.#next as number) + 1) & 0xffff;
  }

  /** Removes, frame by frame, the delay left behind by a fast sender clock or a burst after a stall. */
  #drift(): void {
    this.#lowest = Math.min(this.#lowest, this.#frames.size);
    this.#pops += 1;
    if (this.#pops < DRIFT_WINDOW) return;
    if (!this.#filling && this.#lowest > this.#options.targetFrames) this.#dropOldest();
    this.#pops = 0;
    this.#lowest = Number.POSITIVE_INFINITY;
  }

  #dropOldest(): void {
    const oldest = this.#oldest();
    if (oldest === undefined) return;
    this.#frames.delete(oldest);
    this.stats.dropped += 1;
    this.#next = (oldest + 1) & 0xffff;
  }

  #oldest(): number | undefined {
    let oldest: number | undefined;
    for (const sequence of this.#frames.keys()) {
      if (oldest === undefined || distance(oldest, sequence) < 0) oldest = sequence;
    }
    return oldest;
  }
}

/** Returns how far `b` is ahead of `a`, -32768..32767. */
export function distance(a: number, b: number): number {
  return ((b - a) << 16) >> 16;
}
