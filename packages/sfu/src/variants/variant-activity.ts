import type { Variant } from '../media-engine.js';
import { VARIANTS, variantIndex } from './variants.js';

/** Length of a window, ms. */
const WINDOW_MS = 1000;
/** A variant that brings fewer media packets in a window is inactive at once. */
const MIN_PACKETS = 5;
/** Good windows in a row that make an inactive variant active again. */
const WINDOWS_TO_RESUME = 10;

interface ActivityChange {
  variant: Variant;
  active: boolean;
}

/**
 * Tells which simulcast variants of one track are alive, from media packets alone: what a client says about its
 * encodings is not to be trusted. Padding, probes and retransmissions must not be counted.
 *
 * A keyframe may cost an encoder more than a second of its bitrate; it then leaves out frames until that is made good
 * (libvpx with a noisy picture does). One poor window right after a keyframe therefore says nothing, and is left out.
 */
export class VariantActivity {
  readonly #packets = [0, 0, 0];
  readonly #goodWindows = [0, 0, 0];
  readonly #known = [false, false, false];
  readonly #active = [false, false, false];
  /** A keyframe began in this window. */
  readonly #keyframes = [false, false, false];
  /** One began in the window before. */
  readonly #keyframesBefore = [false, false, false];
  #windowStartMs = 0;

  isKnown(variant: Variant): boolean {
    return this.#known[variantIndex(variant)] === true;
  }

  isActive(variant: Variant): boolean {
    return this.#active[variantIndex(variant)] === true;
  }

  /**
   * A variant sent its first packet: it starts active, and all counting starts anew so that the shortened window is
   * held against nobody.
   */
  appear(variant: Variant, nowMs: number): void {
    const index = variantIndex(variant);
    this.#known[index] = true;
    this.#active[index] = true;
    this.#goodWindows[index] = 0;
    this.restartWindow(nowMs);
  }

  /** Forgets the current window, for instance because the track was muted until now. */
  restartWindow(nowMs: number): void {
    for (let index = 0; index < VARIANTS.length; index++) this.#keyframesBefore[index] ||= this.#keyframes[index]!;
    this.#openWindow(nowMs);
  }

  #openWindow(nowMs: number): void {
    this.#packets.fill(0);
    this.#keyframes.fill(false);
    this.#windowStartMs = nowMs;
  }

  /** One media packet; called for every packet, so it does nothing else. */
  countPacket(index: number): void {
    this.#packets[index]! += 1;
  }

  /** A keyframe begins. */
  countKeyframe(index: number): void {
    this.#keyframes[index] = true;
  }

  /** Judges the window when it is over. Returns what changed, lowest variant first. */
  check(nowMs: number): ActivityChange[] {
    if (nowMs - this.#windowStartMs < WINDOW_MS) return [];
    const changes: ActivityChange[] = [];
    for (const variant of VARIANTS) {
      const index = variantIndex(variant);
      if (!this.#known[index]) continue;
      const good = this.#packets[index]! >= MIN_PACKETS;
      const excused = !good && this.#keyframesBefore[index]!;
      // One excuse does not make the next: what brings a packet or two a second is not alive.
      this.#keyframesBefore[index] = this.#keyframes[index]! && !excused;
      if (excused) continue;
      this.#goodWindows[index] = good ? this.#goodWindows[index]! + 1 : 0;
      if (this.#active[index] && !good) {
        this.#active[index] = false;
        changes.push({ variant, active: false });
      } else if (!this.#active[index] && this.#goodWindows[index]! >= WINDOWS_TO_RESUME) {
        this.#active[index] = true;
        changes.push({ variant, active: true });
      }
    }
    this.#openWindow(nowMs);
    return changes;
  }
}
