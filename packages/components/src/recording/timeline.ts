import type { TappedFrame } from '@bloom/sfu';
import { SETTLE_MS, type ClockOffset, type OriginClock } from './origin-clock.js';

/** Below this error, frames stay where their RTP timestamps put them. */
const TOLERANCE_MS = 15;
/** Consecutive sender reports that must disagree with the RTP timestamps: a single one may be wrong. */
const REPORTS_AGREEING = 3;
/**
 * Beyond this the error is a jump, not a drift. It is corrected at once when the arrival time agrees within
 * `JUMP_AGREEMENT_MS`.
 */
const JUMP_MS = 200;
const JUMP_AGREEMENT_MS = 1_000;
/** Accuracy of a placement by arrival time. */
const ARRIVAL_ERROR_MS = 250;
/** How long to wait for a report that agrees with the arrival times. */
const LOST_MS = 20_000;
/** Beyond this difference from the arrival time, the timestamps of the publisher are wrong. */
const WILD_MS = 30_000;
/** Reports that differ by less are the same report. */
const SAME_REPORT_MS = 0.05;

/**
 * Places the frames of one track in its file, and the file in the recording.
 *
 * RTP timestamps count the samples of a sound card, stand still while a track is muted and start anew with another encoding.
 * The sender reports of the publisher say what time they stand for; audio and video that follow them stay in sync for hours.
 */
export class Timeline {
  readonly #origin: OriginClock;
  readonly #clockRate: number;
  #firstTimestamp: number | undefined;
  /** Added to the track's own timestamps, ticks. */
  #shift = 0;
  /** Start of the track by the server's clock, as if the fastest frame had taken no time. */
  #arrivalStartMs = Number.POSITIVE_INFINITY;
  #settledAtMs = 0;
  /** Start of the track by the publisher's clock. */
  #senderStartMs: number | undefined;
  /** The same, adjusted whenever the publisher sets its clock. */
  #referenceMs: number | undefined;
  /** Recent delay of frames that were placed correctly. */
  #usuallyLateMs = 0;
  #offset: ClockOffset | undefined;
  /** Identifies a report: the publisher's time of timestamp 0. */
  #report = Number.NaN;
  #reportsOff = 0;
  /** Server time since when frames are placed by arrival, because no usable report has come. */
  #lostAtMs: number | undefined;

  constructor(origin: OriginClock, clockRate: number) {
    this.#origin = origin;
    this.#clockRate = clockRate;
  }

  get firstTimestamp(): number {
    return this.#firstTimestamp ?? 0;
  }

  /** Start of the file, Unix milliseconds of the server. */
  get startedAtMs(): number {
    if (this.#senderStartMs === undefined || this.#offset === undefined) return this.#arrivalStartMs;

    return this.#senderStartMs + this.#offset.ms;
  }

  /** Returns the ticks of the file, counted from `firstTimestamp`, at a server time. */
  ticksAt(serverMs: number): number {
    return this.firstTimestamp + Math.round(((serverMs - this.#arrivalStartMs) * this.#clockRate) / 1_000);
  }

  /** Returns the place of a frame in ticks of the file, counted from `firstTimestamp`. The first frame starts the file. */
  place(frame: TappedFrame): number {
    const { timestamp, arrivalMs, senderMs } = frame;
    const offset = this.#origin.offsetOf(frame);
    if (this.#firstTimestamp === undefined) {
      this.#firstTimestamp = timestamp;
      this.#settledAtMs = arrivalMs + SETTLE_MS;
      this.#arrivalStartMs = arrivalMs;
    }
    const aheadMs = this.#msOf(timestamp) - (arrivalMs - this.#arrivalStartMs);
    if (Math.abs(aheadMs) > WILD_MS) {
      this.#move(-aheadMs);
      this.#lostAtMs = arrivalMs;
    } else if (arrivalMs < this.#settledAtMs) {
      this.#arrivalStartMs = Math.min(this.#arrivalStartMs, arrivalMs - this.#msOf(timestamp));
    }
    const arrivedAtMs = arrivalMs - this.#arrivalStartMs;
    if (senderMs !== undefined) this.#compare(frame, senderMs, arrivedAtMs, offset);

    return timestamp + this.#shift;
  }

  /**
   * Resumes after a pause during which the timestamps stood still: the frame is placed by its arrival until a report says
   * exactly.
   */
  resume({ timestamp, arrivalMs }: TappedFrame): void {
    if (this.#firstTimestamp === undefined) return;
    this.#move(arrivalMs - this.#arrivalStartMs - this.#usuallyLateMs - this.#msOf(timestamp));
    this.#lostAtMs = arrivalMs;
  }

  /** Returns the milliseconds of the file at a timestamp of the track. */
  #msOf(timestamp: number): number {
    return ((timestamp + this.#shift - this.firstTimestamp) * 1_000) / this.#clockRate;
  }

  #move(byMs: number): void {
    this.#shift += Math.round((byMs * this.#clockRate) / 1_000);
    this.#reportsOff = 0;
  }

  #compare(frame: TappedFrame, senderMs: number, arrivedAtMs: number, offset: ClockOffset | undefined): void {
    const placedMs = this.#msOf(frame.timestamp);
    const lateMs = arrivedAtMs - placedMs;
    const report = senderMs - (frame.timestamp * 1_000) / this.#clockRate;
    // NaN differs from every report.
    const isNew = !(Math.abs(report - this.#report) < SAME_REPORT_MS);
    this.#report = report;
    if (this.#senderStartMs === undefined) {
      this.#senderStartMs = senderMs - placedMs;
      this.#offset = offset;
    }
    this.#referenceMs ??= senderMs - placedMs;
    const offByMs = senderMs - this.#referenceMs - placedMs;
    const arrivalSaysMs = lateMs - this.#usuallyLateMs;
    if (this.#lostAtMs !== undefined) {
      // Reports from before or during the pause do not account for it.
      const agrees = Math.abs(arrivalSaysMs - offByMs) < ARRIVAL_ERROR_MS;
      if (!agrees && frame.arrivalMs - this.#lostAtMs < LOST_MS) return;
      this.#lostAtMs = undefined;
      if (!agrees) this.#referenceMs += offByMs;
      else if (Math.abs(offByMs) >= TOLERANCE_MS) this.#move(offByMs);
    } else if (Math.abs(offByMs) < TOLERANCE_MS) {
      this.#reportsOff = 0;
      const hasDrifted = Math.abs(lateMs - this.#usuallyLateMs) < JUMP_AGREEMENT_MS / 2;
      if (isNew && hasDrifted) this.#usuallyLateMs = lateMs;
    } else if (Math.abs(offByMs) > JUMP_MS) {
      if (Math.abs(arrivalSaysMs - offByMs) < JUMP_AGREEMENT_MS) this.#move(offByMs);
      // The publisher has set its clock; the track itself did not change.
      else this.#referenceMs += offByMs;
    } else if (isNew) {
      this.#reportsOff++;
      if (this.#reportsOff >= REPORTS_AGREEING) this.#move(offByMs);
    }
  }
}
