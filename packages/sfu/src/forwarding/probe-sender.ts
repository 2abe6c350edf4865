import type { OutboundTrack } from './outbound-track.js';

/** Long enough for several ticks of padding, short enough not to fill a narrow link's queue for long, ms. */
const PROBE_MS = 100;
/** Time between the starts of two probes, ms. */
const PROBE_GAP_MS = 3000;
/** The same for one that shall confirm the last. */
const CONFIRM_GAP_MS = 1000;
/** One tick sends at most this much padding: 20 ms of 8 Mbit/s. */
const MAX_BYTES_PER_TICK = 20_000;

/** Fills what the media leave of a probe's rate with padding on the retransmission streams. */
export class ProbeSender {
  /** A probe is under way: everything that is sent now belongs to it. */
  active = false;
  private bps = 0;
  private startedMs = Number.NEGATIVE_INFINITY;
  private sentBytes = 0;

  constructor(private readonly slots: ReadonlyMap<string, OutboundTrack>) {}

  mayStart(nowMs: number, confirming = false): boolean {
    return !this.active && nowMs - this.startedMs >= (confirming ? CONFIRM_GAP_MS : PROBE_GAP_MS);
  }

  start(bps: number, nowMs: number): void {
    this.active = true;
    this.bps = bps;
    this.startedMs = nowMs;
    this.sentBytes = 0;
    this.tick(nowMs);
  }

  sent(bytes: number): void {
    if (this.active) this.sentBytes += bytes;
  }

  tick(nowMs: number): void {
    const elapsedMs = nowMs - this.startedMs;
    if (elapsedMs > PROBE_MS) {
      this.active = false;
      return;
    }
    // What should have gone out by the next tick.
    const due = (this.bps * (elapsedMs + 20)) / 8000;
    const until = Math.min(due, this.sentBytes + MAX_BYTES_PER_TICK);
    for (const slot of this.slots.values()) {
      while (this.sentBytes < until) if (slot.sendPadding(nowMs) === 0) break;
    }
  }
}
