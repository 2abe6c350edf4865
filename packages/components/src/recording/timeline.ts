import type { TappedFrame } from '@bloom/sfu';
import { SETTLE_MS, type ClockOffset, type OriginClock } from './origin-clock.js';

/** Up to this error, frames stay where their RTP timestamps put them. */
const TOLERANCE_MS = 15;
/** Consecutive sender reports that must contradict the RTP timestamps, since a single one may be wrong. */
const REPORTS_AGREEING = 3;
/**
 * A larger error is a jump, not drift. It is corrected immediately if the arrival time agrees within
 * `JUMP_AGREEMENT_MS`.
 */
const JUMP_MS = 200;
const JUMP_AGREEMENT_MS = 1_000;
/** Accuracy of placing a frame by its arrival time. */
const ARRIVAL_ERROR_MS = 250;
/** How long to wait for a report that agrees with the arrival times. */
const LOST_MS = 20_000;
/** If they differ from the arrival time by more than this, the publisher's timestamps are wrong. */
const WILD_MS = 30_000;
/** Reports that differ by less are the same report. */
const SAME_REPORT_MS = 0.05;

/**
 * Places the frames of one track in its file, and the file in the recording.
 *
 * RTP timestamps count the samples of a sound card, stand still while a track is muted, and restart with another
 * encoding. The publisher's sender reports say what time they stand for. Audio and video that follow the reports stay
 * in sync for hours.
 */
export class Timeline {
  readonly #origin: OriginClock;
  readonly #clockRate: number;
  #firstTimestamp: number | undefined;
  /** Ticks added to the track's own timestamps. */
  #shift = 0;
  /** Start of the track on the server's clock, as if the fastest frame had no delay. */
  #arrivalStartMs = Number.POSITIVE_INFINITY;
  #settledAtMs = 0;
  /** Start of the track on the publisher's clock. */
  #senderStartMs: number | undefined;
  /** The same, adjusted whenever the publisher sets its clock. */
  #referenceMs: number | undefined;
  /** Recent delay of correctly placed frames. */
  #usuallyLateMs = 0;
  #offset: ClockOffset | undefined;
  /** Identifies a report by the publisher's time at timestamp 0. */
  #report = Number.NaN;
  #reportsOff = 0;
  /** Server time since which frames are placed by arrival, for want of a usable report. */
  #lostAtMs: number | undefined;

  constructor(origin: OriginClock, clockRate: number) {
    this.#origin = origin;
    this.#clockRate = clockRate;
  }

  get firstTimestamp(): number {
    return this.#firstTimestamp ?? 0;
  }

  /** Start of the file in Unix milliseconds on the server's clock. */
  get startedAtMs(): number {
    if (this.#senderStartMs === undefined || this.#offset === undefined) return this.#arrivalStartMs;

    return this.#senderStartMs + this.#offset.ms;
  }

  /** Returns the file's ticks, counted from `firstTimestamp`, at a given server time. */
  ticksAt(serverMs: number): number {
    return this.firstTimestamp + Math.round(((serverMs - this.#arrivalStartMs) * this.#clockRate) / 1_000);
  }

  /** Returns a frame's place in the file in ticks counted from `firstTimestamp`. The first frame starts the file. */
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
    if (senderMs !== undefined) {
      if (this.#senderStartMs === undefined) {
        this.#senderStartMs = senderMs - this.#msOf(timestamp);
        this.#offset = offset;
      }
      this.#compare(frame, senderMs, arrivedAtMs);
    }

    return timestamp + this.#shift;
  }

  /**
   * Resumes after a pause during which the timestamps stood still: the frame is placed by its arrival time until a
   * report gives the exact place.
   */
  resume({ timestamp, arrivalMs }: TappedFrame): void {
    if (this.#firstTimestamp === undefined) return;
    this.#move(arrivalMs - this.#arrivalStartMs - this.#usuallyLateMs - this.#msOf(timestamp));
    this.#lostAtMs = arrivalMs;
  }

  /** Returns the time in the file, in ms, at a timestamp of the track. */
  #msOf(timestamp: number): number {
    return ((timestamp + this.#shift - this.firstTimestamp) * 1_000) / this.#clockRate;
  }

  #move(byMs: number): void {
    this.#shift += Math.round((byMs * this.#clockRate) / 1_000);
    this.#reportsOff = 0;
  }

  #compare(frame: TappedFrame, senderMs: number, arrivedAtMs: number): void {
    const placedMs = this.#msOf(frame.timestamp);
    const lateMs = arrivedAtMs - placedMs;
    const report = senderMs - (frame.timestamp * 1_000) / this.#clockRate;
    // NaN differs from every report.
    const isNew = !(Math.abs(report - this.#report) < SAME_REPORT_MS);
    this.#report = report;
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
      // The publisher set its clock; the track itself is unchanged.
      else this.#referenceMs += offByMs;
    } else if (isNew) {
      this.#reportsOff++;
      if (this.#reportsOff >= REPORTS_AGREEING) this.#move(offByMs);
    }
  }
}
