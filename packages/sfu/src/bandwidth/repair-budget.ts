import type { TrackKind } from '../media-frames.js';

/** Retransmissions to one client per tick; more would feed a storm. */
const PACKETS_PER_TICK = 100;
/** Part of the estimate that retransmissions may take; what media leaves of it, if that is more. */
const SHARE = 0.25;
/** Time for which a client that needs none saves them, ms. */
const SAVED_MS = 500;
/** Part of what can be saved that is kept for pictures which no key picture has followed. */
const RESERVED = 0.5;

/**
 * Limits the retransmissions to one client to what its link carries beside the media. All that a client requests after
 * its link has become narrow would keep the link's queue full: what is sent is lost again, and requested again. Pure.
 */
export class RepairBudget {
  #packetsLeft = PACKETS_PER_TICK;
  /** Bits per second; `Infinity` while nothing has been measured. */
  #bps = Infinity;
  #bytesLeft = Infinity;
  /** Bytes that are left for pictures since the last key picture. */
  #reservedBytes = 0;
  #tickedAtMs = 0;

  /**
   * False if a retransmission has to wait until the client requests it again. Sound is small, and waits for nothing.
   * `isOld`: a key picture has followed, so that others come first.
   */
  isLeftFor(kind: TrackKind, isOld: boolean): boolean {
    return this.#packetsLeft > 0 && (kind === 'audio' || this.#bytesLeft > (isOld ? this.#reservedBytes : 0));
  }

  /** Takes the estimate and the rate of the media, bits per second. */
  measured(estimateBps: number, sendingBps: number): void {
    this.#bps = Math.max(estimateBps * SHARE, estimateBps - sendingBps);
  }

  /** Must be called about every 20 ms. */
  tick(nowMs: number): void {
    this.#packetsLeft = PACKETS_PER_TICK;
    const bytesPerMs = this.#bps / 8_000;
    const elapsedMs = nowMs - this.#tickedAtMs;
    this.#tickedAtMs = nowMs;
    if (this.#bps === Infinity) return;
    const savedBytes = SAVED_MS * bytesPerMs;
    this.#bytesLeft = Math.min(this.#bytesLeft + elapsedMs * bytesPerMs, savedBytes);
    this.#reservedBytes = savedBytes * RESERVED;
  }

  /** Takes a retransmission. The last one may exceed what is left; sound that follows it leaves no further debt. */
  spend(bytes: number): void {
    this.#packetsLeft -= 1;
    if (this.#bytesLeft > 0) this.#bytesLeft -= bytes;
  }
}
