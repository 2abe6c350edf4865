import { DelayTrend } from './delay-trend.js';
import { LIMIT_SHARE, Probe } from './probe.js';
import { SentPackets } from './sent-packets.js';
import type { StandingDelay } from './standing-delay.js';

/**
 * Estimate before the first feedback, bits per second. Grows to twice the delivered rate until the first congestion.
 */
const START_BPS = 1_000_000;
/** What a link is taken to carry until more has been shown, bits per second. */
const MODEST_BPS = 250_000;
/** Below what links in use carry: at a link that carries less, nothing that is sent would ever count as too much. */
const MIN_BPS = 20_000;
const MAX_BPS = 100_000_000;
/** Share of the delivered rate that is kept on overuse. */
const BACK_OFF = 0.85;
/** Times the delivered rate up to which the estimate grows by itself once there has been congestion. */
const MOST_AHEAD = 1.5;
/** Growth per second while the capacity is unknown. */
const GROWTH = 1.08;
/** Least growth per second near the capacity, where it is one average packet per response time. */
const LEAST_GROWTH_BPS = 4_000;
/** Assumed of the media for the size of an average packet. */
const PICTURES_PER_SECOND = 30;
const PACKET_BITS = 1_200 * 8;
const LOSS_HIGH = 0.1;
const LOSS_LOW = 0.02;
/** Packets needed before loss is judged. */
const LOSS_SAMPLE = 20;
/** Period over which loss is judged, unless it is clearly too high before that, ms. */
const LOSS_WINDOW_MS = 1000;
/** The delivered rate is measured in buckets of 50 ms. */
const BUCKET_MS = 50;
const BUCKETS = 12;
/** A probe result this far above the known capacity needs confirmation by a second probe. */
const SURPRISING = 1.1;

/**
 * Estimates what one client can receive from its transport-wide feedback
 * (draft-holmer-rmcat-transport-wide-cc-extensions-01): delay based as in draft-ietf-rmcat-gcc-02, loss based as in its
 * section 6, with probing. Pure: the caller passes the time.
 *
 * Feed each sent packet to `packetSent` and each feedback entry to `received` or `lost` in sequence order, then call
 * `feedbackEnd`.
 */
export class BandwidthEstimator {
  readonly #sent = new SentPackets();
  readonly #trend = new DelayTrend();
  readonly #probe = new Probe();
  readonly #standing: StandingDelay | undefined;

  #delayBps = START_BPS;
  #lossBps = Number.POSITIVE_INFINITY;
  #measured = false;
  /** Until the first congestion the estimate is twice the delivered rate. */
  #slowStart = true;
  /** True until congestion has brought the estimate near the delivered rate. */
  #isGuess = true;
  #lastUpdateMs = -1;
  #lastDecreaseMs = Number.NEGATIVE_INFINITY;
  #congestedAtMs = Number.NEGATIVE_INFINITY;
  /** Smoothed rate at which overuse started; growth is slow near it. 0 = unknown. */
  #capacityBps = 0;
  /** Rate at the last congestion, until clearly more has been delivered or two probes have found more; 0 = none. */
  #congestedBps = 0;
  #roundTripMs = 100;
  /** See `provenBps`. */
  #provenBps = 0;
  /** Rate at which the latest probe arrived, even if less than the estimate; 0 after congestion. */
  #carriedBps = 0;
  /** True if the latest probe has neither ended nor arrived as fast as it was sent. */
  #isProbeShort = false;
  /** True if the latest probe to end arrived more slowly than it was sent. */
  hasProbedLimit = false;
  /** What that probe has shown to be the most; `Infinity` if it found no limit, or more has been delivered since. */
  #mostBps = Infinity;
  /** Rate up to which the estimate may grow without delivery, because the client cannot be probed. */
  #reachBps = 0;

  readonly #bucketBytes = new Float64Array(BUCKETS);
  #bucket = -1;
  #firstBucket = -1;
  #arrivalOriginMs = 0;
  #lastArrivalMs = Number.NaN;

  /** Packets reported lost and received so far. */
  readonly reported = { lost: 0, received: 0 };
  #lostCount = 0;
  /**
   * Packets first reported missing by the previous feedback and by this one; they count as lost unless the next one has
   * them.
   */
  #missingBefore = 0;
  #missingNow = 0;
  #receivedCount = 0;
  #lossAtMs = -1;

  #newestSentMs = -1;

  /** `standing`: takes the delays of all packets. */
  constructor(standing?: StandingDelay) {
    this.#standing = standing;
  }

  /** Bits per second; undefined before the first feedback. */
  get estimateBps(): number | undefined {
    return this.#measured ? Math.round(Math.min(this.#delayBps, this.#lossBps)) : undefined;
  }

  /**
   * Lets the estimate grow to this rate although less is delivered; 0 = no. For a client that cannot be probed: the
   * media sent afterwards shows whether the estimate was right.
   */
  reachFor(bps: number): void {
    this.#reachBps = bps;
  }

  /** True while the delay grows. */
  get overused(): boolean {
    return this.#trend.use === 'overuse';
  }

  /**
   * Rate that the latest probe found to be more than was known, bits per second; 0 if it found none, and after
   * congestion.
   */
  get provenBps(): number {
    return this.#provenBps;
  }

  /** What the link is known to carry, bits per second; the estimate begins as a guess. */
  get shownBps(): number {
    const { estimateBps = Infinity } = this;
    const shownBps = Math.max(MODEST_BPS, this.#carriedBps, this.deliveredBps());
    return this.#isGuess ? Math.min(estimateBps, shownBps) : estimateBps;
  }

  /**
   * Rate of the latest probe while neither congestion nor a probe has found a limit, bits per second; 0 before the
   * first probe. Otherwise undefined.
   */
  get openBps(): number | undefined {
    return this.#slowStart && !this.#isProbeShort ? this.#carriedBps : undefined;
  }

  /** What the link carries once congestion or a probe has shown a limit, bits per second; before that `Infinity`. */
  get limitBps(): number {
    return this.#slowStart && !this.hasProbedLimit ? Infinity : this.shownBps;
  }

  /** Time of the latest congestion, ms. */
  get congestedAtMs(): number {
    return this.#congestedAtMs;
  }

  /** True until the result of a probe. */
  get isProbing(): boolean {
    return this.#probe.isRunning;
  }

  /** True if another probe should follow soon: to confirm a surprising result, or to find what is above a good one. */
  get wantsProbe(): boolean {
    return this.#provenBps > 0 || this.#probe.wantsConfirmation;
  }

  /** Transport-wide sequence number of the packet being sent; its low 16 bits go on the wire. */
  get nextSequence(): number {
    return this.#sent.nextSequence;
  }

  /** Records a packet under `nextSequence`. `probe`: the packet belongs to the latest probe. */
  packetSent(bytes: number, nowMs: number, probe = false): void {
    this.#sent.add(bytes, probe ? this.#probe.sent() : 0, nowMs);
  }

  /**
   * Starts a probe: packets sent with `probe` belong to it until `endProbe`. Returns false if one is already under way.
   */
  startProbe(nowMs: number): boolean {
    if (!this.#probe.start(nowMs)) return false;
    this.#provenBps = 0;
    this.#isProbeShort = true;
    return true;
  }

  /** Reports that all packets of the probe have been sent. */
  endProbe(): void {
    this.#probe.end();
  }

  /** Records the arrival of the packet with this 16-bit number, in ms of the receiver's clock. */
  received(wireSequence: number, receiverMs: number): void {
    const sequence = this.#sent.unwrap(wireSequence);
    if (sequence < 0 || !this.#sent.take(sequence)) return;
    const arrivalMs = this.#rebase(receiverMs);
    const { takenSentMs, takenBytes, takenProbe, takenMissing } = this.#sent;
    this.#receivedCount++;
    this.reported.received++;
    // The packet was reordered, not lost.
    if (takenMissing && this.#missingBefore > 0) this.#missingBefore--;
    if (takenSentMs > this.#newestSentMs) this.#newestSentMs = takenSentMs;
    this.#addDelivered(takenBytes, arrivalMs);
    if (takenProbe > 0) this.#probe.arrived(takenProbe, takenBytes, takenSentMs, arrivalMs);
    this.#trend.packet(takenSentMs, arrivalMs);
    this.#standing?.sample(arrivalMs - takenSentMs, arrivalMs);
  }

  /** Records that the packet with this 16-bit number was reported missing; a later feedback may repeat or revoke it. */
  lost(wireSequence: number): void {
    const sequence = this.#sent.unwrap(wireSequence);
    if (sequence >= 0 && this.#sent.miss(sequence)) this.#missingNow++;
  }

  /** Ends one feedback and updates the estimate. */
  feedbackEnd(nowMs: number): void {
    if (this.#newestSentMs >= 0) {
      this.#roundTripMs += 0.1 * (Math.max(1, nowMs - this.#newestSentMs) - this.#roundTripMs);
      this.#newestSentMs = -1;
    }
    this.#lostCount += this.#missingBefore;
    this.reported.lost += this.#missingBefore;
    this.#missingBefore = this.#missingNow;
    this.#missingNow = 0;
    if (this.#receivedCount + this.#lostCount === 0) return;
    const delivered = this.deliveredBps();
    this.#measured = true;
    this.#updateDelay(delivered, nowMs);
    this.#updateLoss(delivered, nowMs);
    this.#finishProbe(nowMs);
    if (!this.#slowStart && this.estimateBps! <= MOST_AHEAD * delivered) this.#isGuess = false;
    this.#lastUpdateMs = nowMs;
  }

  /** Returns the delivered rate, bits per second; 0 while the window is too short. */
  deliveredBps(): number {
    const span = Math.min(this.#bucket - this.#firstBucket, BUCKETS - 1);
    if (span < 4) return 0;
    let bytes = 0;
    // Exclude the newest bucket, which is not full yet.
    for (let back = 1; back <= span; back++) bytes += this.#bucketBytes[(this.#bucket - back) % BUCKETS]!;
    return (bytes * 8000) / (span * BUCKET_MS);
  }

  /**
   * Rebases the receiver's clock to one minute, at the start and after each jump: the clock has an arbitrary origin,
   * wraps and may be set.
   */
  #rebase(receiverMs: number): number {
    if (!(Math.abs(receiverMs - this.#lastArrivalMs) < 60_000)) {
      this.#arrivalOriginMs = receiverMs - 60_000;
      this.#standing?.reset();
      this.#bucket = -1;
    }
    this.#lastArrivalMs = receiverMs;
    return Math.max(0, receiverMs - this.#arrivalOriginMs);
  }

  #addDelivered(bytes: number, arrivalMs: number): void {
    const bucket = Math.floor(arrivalMs / BUCKET_MS);
    if (this.#bucket < 0 || bucket - this.#bucket >= BUCKETS || this.#bucket - bucket >= BUCKETS) {
      this.#bucketBytes.fill(0);
      this.#bucket = bucket;
      this.#firstBucket = bucket;
    }
    while (this.#bucket < bucket) {
      this.#bucket++;
      this.#bucketBytes[this.#bucket % BUCKETS] = 0;
    }
    this.#bucketBytes[bucket % BUCKETS]! += bytes;
  }

  #updateDelay(delivered: number, nowMs: number): void {
    const elapsedMs = this.#lastUpdateMs < 0 ? 0 : Math.min(nowMs - this.#lastUpdateMs, 1000);
    if (this.#trend.use === 'overuse') {
      this.#decrease(delivered, nowMs);
    } else if (this.#trend.use === 'normal') {
      // Packets of a probe do not count.
      if (delivered > 1.3 * this.#congestedBps && nowMs > this.#probe.deadlineMs) this.#congestedBps = 0;
      this.#increase(delivered, elapsedMs);
    }
  }

  #decrease(delivered: number, nowMs: number): void {
    if (nowMs - this.#lastDecreaseMs < this.#roundTripMs + 200) return;
    this.#slowStart = false;
    this.#carriedBps = 0;
    if (delivered === 0) return;
    this.#lastDecreaseMs = nowMs;
    this.#congestedAtMs = nowMs;
    this.#provenBps = 0;
    const near = this.#capacityBps > 0 && Math.abs(delivered - this.#capacityBps) < 0.3 * this.#capacityBps;
    this.#capacityBps = near ? 0.95 * this.#capacityBps + 0.05 * delivered : delivered;
    this.#congestedBps = delivered;
    this.#delayBps = clamp(Math.min(this.#delayBps, BACK_OFF * delivered));
  }

  #increase(delivered: number, elapsedMs: number): void {
    if (this.#slowStart) {
      this.#delayBps = clamp(Math.max(this.#delayBps, 2 * delivered));
      return;
    }
    if (delivered > this.#mostBps) this.#mostBps = Infinity;
    const aheadBps = Math.min(MOST_AHEAD * delivered + 10_000, this.#mostBps);
    // Only probing may exceed this.
    const limit = Math.max(this.#delayBps, aheadBps, this.#reachBps);
    if (delivered > 1.3 * this.#capacityBps) this.#capacityBps = 0;
    let next: number;
    if (this.#capacityBps > 0 && this.#delayBps > 0.7 * this.#capacityBps && this.#delayBps < 1.3 * this.#capacityBps) {
      const packetsPerSecond = 1000 / (this.#roundTripMs + 100);
      const growthBps = Math.max(LEAST_GROWTH_BPS, packetsPerSecond * packetBits(this.#delayBps));
      next = this.#delayBps + growthBps * (elapsedMs / 1000);
    } else {
      next = this.#delayBps * GROWTH ** (elapsedMs / 1000);
    }
    // What arrives without a growing delay is what a decrease would leave, at least.
    this.#delayBps = clamp(Math.max(BACK_OFF * delivered, Math.min(next, limit)));
  }

  #updateLoss(delivered: number, nowMs: number): void {
    const total = this.#lostCount + this.#receivedCount;
    if (this.#lossAtMs < 0) this.#lossAtMs = nowMs;
    const sinceMs = nowMs - this.#lossAtMs;
    if (total < LOSS_SAMPLE || sinceMs < Math.max(200, this.#roundTripMs)) return;
    const ratio = this.#lostCount / total;
    // With few packets, losing more than a tenth may be chance: within two deviations, wait for more packets.
    const chance = 2 * Math.sqrt((LOSS_HIGH * (1 - LOSS_HIGH)) / total);
    if (ratio <= LOSS_HIGH + chance && sinceMs < LOSS_WINDOW_MS) return;
    const elapsedMs = Math.min(nowMs - this.#lossAtMs, 1000);
    this.#lossAtMs = nowMs;
    this.#lostCount = 0;
    this.#receivedCount = 0;
    const current = Math.min(this.#delayBps, this.#lossBps);
    if (ratio > LOSS_HIGH) {
      this.#congestedAtMs = nowMs;
      this.#slowStart = false;
      this.#provenBps = 0;
      this.#carriedBps = 0;
      if (delivered > 0) this.#congestedBps = delivered;
      // Not below the delivered rate: a policer that drops the rest must not starve the client completely.
      this.#lossBps = clamp(Math.max(current * (1 - 0.5 * ratio), BACK_OFF * delivered));
    } else if (ratio < LOSS_LOW && this.#lossBps < Number.POSITIVE_INFINITY) {
      // What arrives without loss is what the link carries, at least.
      this.#lossBps = Math.max(delivered, this.#lossBps * GROWTH ** (elapsedMs / 1000));
      if (this.#lossBps > 1.5 * this.#delayBps) this.#lossBps = Number.POSITIVE_INFINITY;
    }
  }

  #finishProbe(nowMs: number): void {
    const result = this.#probe.finish(nowMs);
    if (result === undefined) return;
    const { bps, isWhole, isLimit } = result;
    this.hasProbedLimit = isLimit;
    this.#mostBps = isLimit ? bps / LIMIT_SHARE : Infinity;
    this.#isProbeShort = isLimit || !isWhole || this.overused;
    this.#carriedBps = this.overused ? 0 : bps;
    const limitBps = isWhole ? Math.min(this.#delayBps, this.#lossBps) : this.#delayBps;
    if (this.overused || bps <= limitBps) {
      this.#probe.refuted();
      return;
    }
    const isSurprising = this.#congestedBps > 0 && bps > SURPRISING * this.#congestedBps;
    const foundBps = isSurprising ? this.#probe.confirmed(bps, nowMs) : bps;
    if (foundBps === 0) return;
    if (isSurprising) this.#congestedBps = 0;
    this.#provenBps = foundBps;
    this.#delayBps = clamp(Math.max(this.#delayBps, foundBps));
    if (this.#capacityBps > 0 && foundBps > 1.3 * this.#capacityBps) this.#capacityBps = 0;
    if (isWhole) this.#lossBps = Math.max(this.#lossBps, foundBps);
  }
}

/** Returns the bits of an average packet at a rate, bits per second (section 5.5 of the draft). */
function packetBits(bps: number): number {
  const perPicture = bps / PICTURES_PER_SECOND;
  return perPicture / Math.ceil(perPicture / PACKET_BITS);
}

function clamp(bps: number): number {
  return Math.min(MAX_BPS, Math.max(MIN_BPS, bps));
}
