import { FRAME_MS } from './codecs.js';

/** Longer stalls are not made up for: a burst of old sound helps nobody. */
const MAX_BEHIND = 10;

/** Says how many frames are due, from a monotonic clock and not from counting timers, which drift. */
export class FramePacer {
  #next: number | undefined;

  /** Frames due at `now` (milliseconds); the first call makes one due. */
  due(now: number): number {
    this.#next ??= now;
    if (now < this.#next) return 0;
    const count = Math.floor((now - this.#next) / FRAME_MS) + 1;
    this.#next += count * FRAME_MS;
    return Math.min(count, MAX_BEHIND);
  }

  /** Milliseconds until the next frame is due. */
  wait(now: number): number {
    return Math.max(0, (this.#next ?? now) - now);
  }
}
