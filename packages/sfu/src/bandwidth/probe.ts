/** Wait for the last acknowledgements, ms. */
const TIMEOUT_MS = 1000;
/** Numbers 1..MAX_ID are used in turn. */
const MAX_ID = 200;
const CONFIRM_WITHIN_MS = 5000;

interface ProbeResult {
  /** The link takes this much, bits per second. */
  bps: number;
  /** Next to nothing was lost: what was lost before is not lost any more. */
  isWhole: boolean;
}

/** Measures a link by a burst of packets. One burst at a time; a later one starts over. Pure: the caller passes the time. */
export class Probe {
  #id = 0;
  #running = false;
  /** More packets may be sent. */
  #open = false;
  /** The probe is judged then, whatever is missing. */
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

  /** True after a surprising result: another probe should follow soon. */
  get wantsConfirmation(): boolean {
    return this.#foundBps > 0;
  }

  /** Returns false while a probe is under way. */
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

  /** Counts one packet. Returns the number under which it arrives; 0 when no probe is under way. */
  sent(): number {
    if (!this.#running) return 0;
    this.#packets++;
    return this.#id;
  }

  /**
   * Reports that all packets are sent. Only then is the probe judged, once all are acknowledged: with a round trip shorter than
   * the probe, everything sent so far is acknowledged many times in between.
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

  /** Returns the result once; undefined while the probe is under way, and when it shows nothing. */
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
    const bps = arriveBps < 0.9 * sendBps ? 0.95 * arriveBps : Math.min(sendBps, arriveBps);

    return { bps, isWhole: this.#acked >= 0.98 * this.#packets };
  }

  /**
   * Returns what two probes in a row have found, or 0 when this is the first one to find so much. Packets held up on the way and
   * then released together look like a fast link, so a surprising result is confirmed.
   */
  confirmed(bps: number, nowMs: number): number {
    const before = this.#foundBps;
    const isSecond = before > 0 && nowMs - this.#foundAtMs < CONFIRM_WITHIN_MS;
    this.#foundBps = isSecond ? 0 : bps;
    this.#foundAtMs = nowMs;

    return isSecond ? Math.min(bps, before) : 0;
  }

  /** Forgets a surprising result: a later one was ordinary. */
  refuted(): void {
    this.#foundBps = 0;
  }
}
