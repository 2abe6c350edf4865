import { FRAME_MS } from './codecs.js';

/** Longer stalls are skipped: a burst of old audio is useless. */
const MAX_BEHIND = 10;

/** Computes the number of frames due from a monotonic clock, since counting timers would drift. */
export class FramePacer {
  #next: number | undefined;

  /** Returns the frames due at `now` (milliseconds); the first call makes one due. */
  due(now: number): number {
    this.#next ??= now;
    if (now < this.#next) return 0;
    const count = Math.floor((now - this.#next) / FRAME_MS) + 1;
    this.#next += count * FRAME_MS;
    return Math.min(count, MAX_BEHIND);
  }

  /** Returns the milliseconds until the next frame is due. */
  wait(now: number): number {
    return Math.max(0, (this.#next ?? now) - now);
  }
}
