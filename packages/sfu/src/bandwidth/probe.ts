/** Time to wait for the last acknowledgements, ms. */
const TIMEOUT_MS = 1000;
/** Numbers 1..MAX_ID are used in turn. */
const MAX_ID = 200;
const CONFIRM_WITHIN_MS = 5000;
/** Part of what a link carries at most that it is taken to carry. */
export const LIMIT_SHARE = 0.95;

interface ProbeResult {
  /** Rate that the link carries, bits per second. */
  bps: number;
  /** True if almost nothing was lost, which lifts the limit set by an earlier loss. */
  isWhole: boolean;
  /** True if the packets arrived more slowly than they were sent, so that the link carries no more. */
  isLimit: boolean;
}

/**
 * Measures a link with a burst of packets. One burst at a time; a later one starts over. Pure: the caller passes the
 * time.
 */
export class Probe {
  #id = 0;
  #running = false;
  /** True while more packets may be sent. */
  #open = false;
  /** Time at which the probe is judged even if packets are missing, ms. */
  deadlineMs = 0;
  #packets = 0;
  #acked = 0;
  #bytes = 0;
  #firstBytes = 0;
  #lastBytes = 0;
  #firstSentMs = 0;
  #lastSentMs = 0;
  #firstArrivalMs = 0;
  #lastArrivalMs = 0;
  /** A surprising result that awaits confirmation, bits per second; 0 = none. */
  #foundBps = 0;
  #foundAtMs = 0;

  /** True until the result. */
  get isRunning(): boolean {
    return this.#running;
  }

  /** True after a surprising result: another probe should follow soon. */
  get wantsConfirmation(): boolean {
    return this.#foundBps > 0;
  }

  /** Returns false if a probe is already under way. */
  start(nowMs: number): boolean {
    if (this.#running && nowMs < this.deadlineMs) return false;
    this.#running = true;
    this.#open = true;
    this.#id = (this.#id % MAX_ID) + 1;
    this.deadlineMs = nowMs + TIMEOUT_MS;
    this.#packets = 0;
    this.#acked = 0;
    this.#bytes = 0;
    return true;
  }

  /** Counts one packet. Returns the number under which it arrives; 0 if no probe is under way. */
  sent(): number {
    if (!this.#running) return 0;
    this.#packets++;
    return this.#id;
  }

  /**
   * Reports that all packets have been sent. Only then is the probe judged, once all are acknowledged: if the round
   * trip is shorter than the probe, everything sent so far is acknowledged many times before its end.
   */
  end(): void {
    this.#open = false;
  }

  arrived(id: number, bytes: number, sentMs: number, arrivalMs: number): void {
    if (!this.#running || id !== this.#id) return;
    if (this.#acked === 0) {
      this.#firstBytes = bytes;
      this.#firstSentMs = sentMs;
      this.#firstArrivalMs = arrivalMs;
    }
    this.#acked++;
    this.#bytes += bytes;
    this.#lastBytes = bytes;
    this.#lastSentMs = sentMs;
    this.#lastArrivalMs = arrivalMs;
  }

  /** Returns the result once; undefined while the probe is under way or if it shows nothing. */
  finish(nowMs: number): ProbeResult | undefined {
    if (!this.#running || this.#packets === 0) return undefined;
    const complete = !this.#open && this.#acked >= this.#packets;
    if (!complete && nowMs < this.deadlineMs) return undefined;
    this.#running = false;
    if (this.#acked < 4 || this.#acked < 0.8 * this.#packets) return undefined;
    const sendMs = this.#lastSentMs - this.#firstSentMs;
    const arriveMs = this.#lastArrivalMs - this.#firstArrivalMs;
    if (sendMs <= 0 || arriveMs <= 0) return undefined;
    const sendBps = ((this.#bytes - this.#lastBytes) * 8000) / sendMs;
    const arriveBps = ((this.#bytes - this.#firstBytes) * 8000) / arriveMs;
    // Packets that were held up together arrive faster than the link allows.
    if (arriveBps > 2 * sendBps) return undefined;
    const isLimit = arriveBps < 0.9 * sendBps;
    const bps = isLimit ? LIMIT_SHARE * arriveBps : Math.min(sendBps, arriveBps);

    return { bps, isWhole: this.#acked >= 0.98 * this.#packets, isLimit };
  }

  /**
   * Returns the rate that two consecutive probes have measured, or 0 if this is the first to measure so much. Packets
   * held up on the way and then released together look like a fast link, so a surprising result needs confirmation.
   */
  confirmed(bps: number, nowMs: number): number {
    const before = this.#foundBps;
    const isSecond = before > 0 && nowMs - this.#foundAtMs < CONFIRM_WITHIN_MS;
    this.#foundBps = isSecond ? 0 : bps;
    this.#foundAtMs = nowMs;

    return isSecond ? Math.min(bps, before) : 0;
  }

  /** Discards a surprising result after a later ordinary one. */
  refuted(): void {
    this.#foundBps = 0;
  }
}
