import type { Variant } from '../media-engine.js';
import { VARIANTS, variantIndex } from './variants.js';

/** Length of a window, ms. */
const WINDOW_MS = 1000;
/** A variant with fewer media packets in a window becomes inactive immediately, if there is another one. */
const MIN_PACKETS = 5;
/** Consecutive good windows that reactivate an inactive variant, if there is another one. */
const WINDOWS_TO_RESUME = 10;

interface ActivityChange {
  variant: Variant;
  active: boolean;
}

/**
 * Decides which simulcast variants of one track are active, from media packets alone: what a client says about its
 * encodings cannot be trusted. Padding, probes and retransmissions must not be counted.
 *
 * A keyframe may cost an encoder more than a second of its bitrate; it then skips frames to make up for it (libvpx does
 * with a noisy picture). Therefore one poor window right after a keyframe is ignored.
 *
 * Both rules choose between variants, so the best available one always remains: if every variant is poor, any packet
 * keeps one active, and if none is active, the first good ones become active immediately. Otherwise a publisher whose
 * network or browser stalled for a second would stay invisible to newcomers for ten.
 */
export class VariantActivity {
  readonly #packets = [0, 0, 0];
  readonly #goodWindows = [0, 0, 0];
  readonly #known = [false, false, false];
  readonly #active = [false, false, false];
  /** True if a keyframe started in this window. */
  readonly #keyframes = [false, false, false];
  /** True if a keyframe started in the previous window. */
  readonly #keyframesBefore = [false, false, false];
  #windowStartMs = 0;

  isActive(variant: Variant): boolean {
    return this.#active[variantIndex(variant)] === true;
  }

  /**
   * Activates a variant with its first packet. The window starts over, so that no variant is judged by a shortened one.
   */
  appear(variant: Variant, nowMs: number): void {
    const index = variantIndex(variant);
    this.#known[index] = true;
    this.#active[index] = true;
    this.#goodWindows[index] = 0;
    this.restartWindow(nowMs);
  }

  /** Treats the variant as one that has not appeared yet. */
  forget(variant: Variant): void {
    const index = variantIndex(variant);
    this.#known[index] = false;
    this.#goodWindows[index] = 0;
  }

  /** Discards the current window, for instance because the track was muted. */
  restartWindow(nowMs: number): void {
    for (let index = 0; index < VARIANTS.length; index++) this.#keyframesBefore[index] ||= this.#keyframes[index]!;
    this.#openWindow(nowMs);
  }

  #openWindow(nowMs: number): void {
    this.#packets.fill(0);
    this.#keyframes.fill(false);
    this.#windowStartMs = nowMs;
  }

  /** Counts one media packet. Called for every packet, so it does nothing else. */
  countPacket(index: number): void {
    this.#packets[index]! += 1;
  }

  /** Records the start of a keyframe. */
  countKeyframe(index: number): void {
    this.#keyframes[index] = true;
  }

  /** Judges the window once it has ended. Returns the changes, lowest variant first. */
  check(nowMs: number): ActivityChange[] {
    if (nowMs - this.#windowStartMs < WINDOW_MS) return [];
    const changes: ActivityChange[] = [];
    const least = Math.max(...this.#packets) < MIN_PACKETS ? 1 : MIN_PACKETS;
    const windowsToResume = this.#active.includes(true) ? WINDOWS_TO_RESUME : 1;
    for (const variant of VARIANTS) {
      const index = variantIndex(variant);
      if (!this.#known[index]) continue;
      const good = this.#packets[index]! >= least;
      const excused = !good && this.#keyframesBefore[index]!;
      // Excuse one window only: a variant with one or two packets a second is not active.
      this.#keyframesBefore[index] = this.#keyframes[index]! && !excused;
      if (excused) continue;
      this.#goodWindows[index] = good ? this.#goodWindows[index]! + 1 : 0;
      if (this.#active[index] && !good) {
        this.#active[index] = false;
        changes.push({ variant, active: false });
      } else if (!this.#active[index] && this.#goodWindows[index]! >= windowsToResume) {
        this.#active[index] = true;
        changes.push({ variant, active: true });
      }
    }
    this.#openWindow(nowMs);
    return changes;
  }
}
