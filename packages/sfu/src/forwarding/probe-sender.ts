import type { OutboundTrack } from './outbound-track.js';

/** Length of a probe, ms: several ticks of padding, but too short to fill a narrow link's queue for long. */
const PROBE_MS = 100;
/** Time between the starts of two probes, ms. */
const PROBE_GAP_MS = 3000;
/** Time from the start of a probe that found more to that of the one that confirms it or finds the rest, ms. */
const SOON_MS = 500;
const TICK_MS = 20;
/**
 * A probe exceeds the estimate by at most this many bits per second, or a multiple of the estimate: more would fill a
 * narrow link's queue for long. The next probe starts from what this one finds.
 */
const REACH_BPS = 8_000_000;
const REACH_FACTOR = 2;
/** Upper limit with padding, whatever a publisher announces: each probe of each viewer costs its packets. */
const MAX_PADDING_BPS = 24_000_000;

/** Fills the part of a probe's rate that media leaves free with padding on the retransmission streams. */
export class ProbeSender {
  readonly #slots: ReadonlyMap<string, OutboundTrack>;
  /** True during a probe, when everything sent belongs to it. */
  active = false;
  #bps = 0;
  #startedMs = Number.NEGATIVE_INFINITY;
  #sentBytes = 0;

  constructor(slots: ReadonlyMap<string, OutboundTrack>) {
    this.#slots = slots;
  }

  mayStart(nowMs: number, isSoon: boolean): boolean {
    return !this.active && nowMs - this.#startedMs >= (isSoon ? SOON_MS : PROBE_GAP_MS);
  }

  /** False if no slot has a stream for padding, in which case the probe would be the media alone. */
  get canProbe(): boolean {
    for (const slot of this.#slots.values()) if (slot.canPad) return true;
    return false;
  }

  start(bps: number, estimateBps: number, nowMs: number): void {
    this.active = true;
    this.#bps = Math.min(bps, Math.max(estimateBps + REACH_BPS, estimateBps * REACH_FACTOR));
    this.#startedMs = nowMs;
    this.#sentBytes = 0;
    this.tick(nowMs);
  }

  sent(bytes: number): void {
    if (this.active) this.#sentBytes += bytes;
  }

  tick(nowMs: number): void {
    const elapsedMs = nowMs - this.#startedMs;
    if (elapsedMs > PROBE_MS) {
      this.active = false;
      return;
    }
    // Bytes due by the next tick.
    const due = (this.#bps * (elapsedMs + TICK_MS)) / 8000;
    // A late tick must not send the whole backlog at once.
    const perTick = (Math.min(Math.max(this.#bps, REACH_BPS), MAX_PADDING_BPS) * TICK_MS) / 8000;
    const until = Math.min(due, this.#sentBytes + perTick);
    for (const slot of this.#slots.values()) {
      while (this.#sentBytes < until) if (slot.sendPadding(nowMs) === 0) break;
    }
  }
}
