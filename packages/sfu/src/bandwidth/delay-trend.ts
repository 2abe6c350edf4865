/** Packets sent within this time of the first one form a group, ms. */
const GROUP_MS = 5;
const WINDOW = 20;
const SMOOTHING = 0.9;
const GAIN = 4;
const MAX_DELTAS = 60;
const THRESHOLD_START = 12.5;
const THRESHOLD_MIN = 6;
const THRESHOLD_MAX = 600;
const THRESHOLD_UP = 0.0087;
const THRESHOLD_DOWN = 0.039;
/** After a hold-up, packets that arrive within this time of the previous one belong to its group, ms. */
const BURST_MS = 5;
/** Longest time over which one group arrives, ms. */
const LONGEST_BURST_MS = 100;
/** A trend above the threshold for less than this is noise, ms. */
const OVERUSE_MS = 10;
/** A pause in sending or arrivals that restarts the measurement, ms. */
const PAUSE_MS = 3000;

type LinkUse = 'underuse' | 'normal' | 'overuse';

/**
 * Detects growing one-way delay: the queue before the bottleneck fills before packets are lost. The trend line filter
 * with adaptive threshold of draft-ietf-rmcat-gcc-02 (sections 5.2 to 5.4) as deployed in browsers.
 */
export class DelayTrend {
  use: LinkUse = 'normal';

  #groupFirstSent = -1;
  #groupLastSent = 0;
  #groupFirstArrival = 0;
  #groupLastArrival = 0;
  #previousSent = -1;
  #previousArrival = 0;

  readonly #times = new Float64Array(WINDOW);
  readonly #delays = new Float64Array(WINDOW);
  #points = 0;
  #deltas = 0;
  #originMs = -1;
  #accumulated = 0;
  #smoothed = 0;

  #threshold = THRESHOLD_START;
  #thresholdAtMs = -1;
  #overMs = 0;
  #overCount = 0;
  #previousTrend = 0;

  /** Takes one arrived packet, in sending order. Times in ms; the two clocks are independent. */
  packet(sentMs: number, arrivalMs: number): void {
    if (this.#groupFirstSent < 0) {
      this.#startGroup(sentMs, arrivalMs);
      return;
    }
    if (sentMs < this.#groupFirstSent) return;
    if (sentMs - this.#groupFirstSent <= GROUP_MS || this.#inBurst(sentMs, arrivalMs)) {
      this.#groupLastSent = sentMs;
      if (arrivalMs > this.#groupLastArrival) this.#groupLastArrival = arrivalMs;
      return;
    }
    if (this.#previousSent >= 0) {
      const sendDelta = this.#groupLastSent - this.#previousSent;
      const arrivalDelta = this.#groupLastArrival - this.#previousArrival;
      if (arrivalDelta < 0 || arrivalDelta > PAUSE_MS || sendDelta > PAUSE_MS) this.#reset();
      else this.#update(sendDelta, arrivalDelta, this.#groupLastArrival);
    }
    this.#previousSent = this.#groupLastSent;
    this.#previousArrival = this.#groupLastArrival;
    this.#startGroup(sentMs, arrivalMs);
  }

  /**
   * Returns whether the packet arrived in a burst. After a pause, a link or receiver releases everything at once, which
   * is not a growing queue: packets that arrive together form one group, as late as its last packet (pre-filtering).
   */
  #inBurst(sentMs: number, arrivalMs: number): boolean {
    const sendDelta = sentMs - this.#groupLastSent;
    if (sendDelta === 0) return true;
    const arrivalDelta = arrivalMs - this.#groupLastArrival;
    // The receiver's clock may have been set back; later packets then belong to no earlier group.
    const lastedMs = Math.abs(arrivalMs - this.#groupFirstArrival);
    return arrivalDelta <= BURST_MS && arrivalDelta < sendDelta && lastedMs < LONGEST_BURST_MS;
  }

  #startGroup(sentMs: number, arrivalMs: number): void {
    this.#groupFirstArrival = arrivalMs;
    this.#groupFirstSent = sentMs;
    this.#groupLastSent = sentMs;
    this.#groupLastArrival = arrivalMs;
  }

  #reset(): void {
    this.#points = 0;
    this.#deltas = 0;
    this.#originMs = -1;
    this.#accumulated = 0;
    this.#smoothed = 0;
    this.#overMs = 0;
    this.#overCount = 0;
    this.#previousTrend = 0;
    this.#thresholdAtMs = -1;
    this.use = 'normal';
  }

  #update(sendDelta: number, arrivalDelta: number, arrivalMs: number): void {
    if (this.#originMs < 0) this.#originMs = arrivalMs;
    this.#deltas = Math.min(this.#deltas + 1, MAX_DELTAS);
    this.#accumulated += arrivalDelta - sendDelta;
    this.#smoothed = SMOOTHING * this.#smoothed + (1 - SMOOTHING) * this.#accumulated;
    const slot = this.#points % WINDOW;
    this.#times[slot] = arrivalMs - this.#originMs;
    this.#delays[slot] = this.#smoothed;
    this.#points++;
    if (this.#points < WINDOW) return;
    this.#detect(this.#slope(), sendDelta, arrivalMs);
  }

  /** Returns the least-squares slope over the window: ms of delay per ms of time. */
  #slope(): number {
    let meanX = 0;
    let meanY = 0;
    for (let i = 0; i < WINDOW; i++) {
      meanX += this.#times[i]!;
      meanY += this.#delays[i]!;
    }
    meanX /= WINDOW;
    meanY /= WINDOW;
    let above = 0;
    let below = 0;
    for (let i = 0; i < WINDOW; i++) {
      const x = this.#times[i]! - meanX;
      above += x * (this.#delays[i]! - meanY);
      below += x * x;
    }
    return below === 0 ? this.#previousTrend : above / below;
  }

  #detect(trend: number, sendDelta: number, nowMs: number): void {
    const modified = this.#deltas * trend * GAIN;
    if (modified > this.#threshold) {
      this.#overMs += this.#overCount === 0 ? sendDelta / 2 : sendDelta;
      this.#overCount++;
      if (this.#overMs > OVERUSE_MS && this.#overCount > 1 && trend >= this.#previousTrend) {
        this.#overMs = 0;
        this.#overCount = 0;
        this.use = 'overuse';
      }
    } else {
      this.#overMs = 0;
      this.#overCount = 0;
      this.use = modified < -this.#threshold ? 'underuse' : 'normal';
    }
    this.#previousTrend = trend;
    this.#adaptThreshold(Math.abs(modified), nowMs);
  }

  #adaptThreshold(modified: number, nowMs: number): void {
    const elapsed = this.#thresholdAtMs < 0 ? 0 : Math.min(nowMs - this.#thresholdAtMs, 100);
    this.#thresholdAtMs = nowMs;
    // A sudden jump is a route change or a burst and must not raise the threshold.
    if (modified > this.#threshold + 15) return;
    const rate = modified < this.#threshold ? THRESHOLD_DOWN : THRESHOLD_UP;
    const next = this.#threshold + rate * (modified - this.#threshold) * elapsed;
    this.#threshold = Math.min(THRESHOLD_MAX, Math.max(THRESHOLD_MIN, next));
  }
}
