/** Delay before the first NACK, for packets that are only reordered. */
const REORDER_MS = 5;

export interface LossTrackerOptions {
  /** Limit on missing packets; beyond it the oldest are given up. */
  maxMissing?: number;
  /**
   * NACKs sent for one packet. A long round trip may outlast them, so the packet is still expected after the last one.
   */
  maxRetries?: number;
  /** A packet that has been missing for longer is given up. */
  maxAgeMs?: number;
}

/** A gap wider than this is an outage or a restart of the sender, which NACKs cannot repair. */
const MAX_GAP = 1000;

/**
 * Tracks which packets of one received stream are missing and when to request them again. Pure: the caller passes the
 * time and gets unwrapped sequence numbers. Holds at most `maxMissing` entries, oldest first.
 */
export class LossTracker {
  /** Packets given up; never decreases. */
  abandoned = 0;
  /** Missing packets that arrived, by reordering or retransmission; never decreases. */
  recovered = 0;
  /** Sequence numbers requested, including repeats; never decreases. */
  requested = 0;

  readonly #maxRetries: number;
  readonly #maxAgeMs: number;
  readonly #sequences: Float64Array;
  readonly #missingSinceMs: Float64Array;
  readonly #askedAtMs: Float64Array;
  readonly #tries: Uint8Array;
  #count = 0;
  #newest = -1;

  constructor(options: LossTrackerOptions = {}) {
    const size = options.maxMissing ?? 512;
    this.#maxRetries = options.maxRetries ?? 10;
    this.#maxAgeMs = options.maxAgeMs ?? 1000;
    this.#sequences = new Float64Array(size);
    this.#missingSinceMs = new Float64Array(size);
    this.#askedAtMs = new Float64Array(size);
    this.#tries = new Uint8Array(size);
  }

  get missing(): number {
    return this.#count;
  }

  /** Returns whether the packet with this unwrapped number is still expected. */
  isMissing(sequence: number): boolean {
    return this.#indexOf(sequence) >= 0;
  }

  /** Records an arrived packet, including one restored from RTX, under its unwrapped sequence number. */
  received(sequence: number, nowMs: number): void {
    if (this.#newest < 0 || sequence === this.#newest + 1) {
      this.#newest = sequence;
      return;
    }
    if (sequence <= this.#newest) {
      if (this.#count > 0) this.#found(sequence);
      return;
    }
    const gap = sequence - this.#newest - 1;
    if (gap > MAX_GAP) {
      this.abandoned += this.#count + gap;
      this.#count = 0;
    } else {
      this.#addAll(this.#newest + 1, sequence, nowMs);
    }
    this.#newest = sequence;
  }

  /**
   * Writes the sequence numbers to request now into `out`, ascending, and returns how many. Each is requested once per
   * round trip, at most every 20 ms, until it arrives or `maxRetries` are used up; it is expected until it is too old.
   */
  due(nowMs: number, roundTripMs: number, out: Float64Array): number {
    if (this.#count === 0) return 0;
    const interval = Math.max(20, roundTripMs);
    let kept = 0;
    let asked = 0;
    for (let i = 0; i < this.#count; i += 1) {
      if (nowMs - this.#missingSinceMs[i]! > this.#maxAgeMs) {
        this.abandoned += 1;
        continue;
      }
      const isDue = nowMs >= this.#askedAtMs[i]! && this.#tries[i]! < this.#maxRetries;
      if (isDue && asked < out.length) {
        out[asked] = this.#sequences[i]!;
        asked += 1;
        this.#askedAtMs[i] = nowMs + interval;
        this.#tries[i] = this.#tries[i]! + 1;
      }
      this.#move(i, kept);
      kept += 1;
    }
    this.#count = kept;
    this.requested += asked;
    return asked;
  }

  /** Forgets everything, for instance when the stream stops or a key frame makes the past irrelevant. */
  clear(): void {
    this.#count = 0;
  }

  /**
   * Adds the numbers from `first` to before `end`, and gives up the oldest that do not fit. Makes room once; otherwise
   * a sender that leaves a gap before each packet would shift the whole table once per missing number.
   */
  #addAll(first: number, end: number, nowMs: number): void {
    const size = this.#sequences.length;
    const from = Math.max(first, end - size);
    const overflow = Math.max(0, this.#count + (end - from) - size);
    this.abandoned += from - first + overflow;
    if (overflow > 0) {
      for (const column of [this.#sequences, this.#missingSinceMs, this.#askedAtMs, this.#tries]) {
        column.copyWithin(0, overflow, this.#count);
      }
      this.#count -= overflow;
    }
    const until = this.#count + (end - from);
    this.#missingSinceMs.fill(nowMs, this.#count, until);
    this.#askedAtMs.fill(nowMs + REORDER_MS, this.#count, until);
    this.#tries.fill(0, this.#count, until);
    for (let lost = from; lost < end; lost += 1) this.#sequences[this.#count++] = lost;
  }

  #found(sequence: number): void {
    const at = this.#indexOf(sequence);
    if (at < 0) return;
    for (let i = at + 1; i < this.#count; i += 1) this.#move(i, i - 1);
    this.#count -= 1;
    this.recovered += 1;
  }

  #indexOf(sequence: number): number {
    let low = 0;
    let high = this.#count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const value = this.#sequences[middle]!;
      if (value === sequence) return middle;
      if (value < sequence) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #move(from: number, to: number): void {
    if (from === to) return;
    this.#sequences[to] = this.#sequences[from]!;
    this.#missingSinceMs[to] = this.#missingSinceMs[from]!;
    this.#askedAtMs[to] = this.#askedAtMs[from]!;
    this.#tries[to] = this.#tries[from]!;
  }
}
