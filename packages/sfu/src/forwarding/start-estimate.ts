/** The start phase of libwebrtc's estimator lasts 2 s from its first report, which may be late on a busy machine. */
const PHASE_MS = 3000;
const INTERVAL_MS = 100;
/** Headroom above the negotiated bitrates, for retransmissions and probes. */
const HEADROOM = 1.25;
/** Sent last, so that the initial estimate does not remain a ceiling. */
const UNLIMITED_BPS = 100_000_000;

/**
 * Uses REMB to tell a publisher what it may send while its path is new. Its own estimator starts at 300 kbit/s and
 * corrects this from two short bursts. If these arrive unevenly (a busy machine is enough), it grows by only 8 % a
 * second, and the high variants of a simulcast track are missing for half a minute. During its start phase it accepts a
 * REMB as an estimate, and on a narrow path transport-wide feedback corrects that within a round trip or two.
 */
export class StartEstimate {
  #untilMs = Number.NEGATIVE_INFINITY;
  #dueMs = 0;
  #pending = false;

  /** Starts the estimate when the path is up, or up again after a restart. */
  begin(nowMs: number): void {
    this.#untilMs = nowMs + PHASE_MS;
    this.#dueMs = nowMs;
    this.#pending = true;
  }

  /**
   * Returns the bits per second to announce now, 0 for none. `expectedBps`: everything the publisher may want to send.
   */
  due(nowMs: number, expectedBps: number): number {
    if (!this.#pending || nowMs < this.#dueMs || expectedBps === 0) return 0;
    this.#dueMs = nowMs + INTERVAL_MS;
    if (nowMs < this.#untilMs) return Math.round(expectedBps * HEADROOM);
    this.#pending = false;
    return UNLIMITED_BPS;
  }
}
