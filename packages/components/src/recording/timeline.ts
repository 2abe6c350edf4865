import type { TappedFrame } from '@bloom/sfu';
import { SETTLE_MS, type ClockOffset, type OriginClock } from './origin-clock.js';

/** Off by less than this, frames stay where their RTP timestamps put them. */
const TOLERANCE_MS = 15;
/** So many sender reports in a row must say that it is off: one alone may have been made at a bad moment. */
const REPORTS_AGREEING = 3;
/** A jump, not a drift: corrected at once when the time of arrival says the same to this. */
const JUMP_MS = 200;
const JUMP_AGREEMENT_MS = 1_000;
/** What was placed by its arrival is right to this. */
const ARRIVAL_ERROR_MS = 250;
/** So long a report that agrees with the times of arrival is waited for. */
const LOST_MS = 20_000;
/** No network delays or hurries this much: the publisher's timestamps are not to be believed. */
const WILD_MS = 30_000;
/** Two reports that differ by less tell the same. */
const SAME_REPORT_MS = 0.05;

/**
 * Puts the frames of one track at their place in its file, and the file at its place in the recording.
 *
 * RTP timestamps count samples of a sound card, or stand still while a track is muted, or begin anew with another encoding;
 * the publisher's sender reports say where its clock really is. Sound and picture that follow it stay together over hours.
 */
export class Timeline {
  readonly #origin: OriginClock;
  readonly #clockRate: number;
  #firstTimestamp: number | undefined;
  /** Added to the track's own timestamps, ticks. */
  #shift = 0;
  /** By the server's clock, as if the fastest frame had taken no time. */
  #arrivalStartMs = Number.POSITIVE_INFINITY;
  #settledAtMs = 0;
  /** By the publisher's clock. */
  #senderStartMs: number | undefined;
  /** The same, as of now: it moves when the publisher sets its clock. */
  #referenceMs: number | undefined;
  /** How late frames came lately that were where they belong. */
  #usuallyLateMs = 0;
  #offset: ClockOffset | undefined;
  /** What tells one report from another: the publisher's time of the timestamp 0. */
  #report = Number.NaN;
  #reportsOff = 0;
  /** Since when, by the server's clock, frames are placed by their arrival: no report tells more yet. */
  #lostAtMs: number | undefined;

  constructor(origin: OriginClock, clockRate: number) {
    this.#origin = origin;
    this.#clockRate = clockRate;
  }

  get firstTimestamp(): number {
    return this.#firstTimestamp ?? 0;
  }

  /** When the file begins, Unix milliseconds of the server. */
  get startedAtMs(): number {
    if (this.#senderStartMs === undefined || this.#offset === undefined) return this.#arrivalStartMs;

    return this.#senderStartMs + this.#offset.ms;
  }

  /** Ticks of the file, counted from `firstTimestamp`, at a moment of the server. */
  ticksAt(serverMs: number): number {
    return this.firstTimestamp + Math.round(((serverMs - this.#arrivalStartMs) * this.#clockRate) / 1_000);
  }

  /** Where the frame belongs: ticks of the file, counted from `firstTimestamp`. The first one begins it. */
  place(frame: TappedFrame): number {
    const { timestamp, arrivalMs, senderMs } = frame;
    const offset = this.#origin.heard(frame);
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
   * The track was silent before this frame, and its timestamps stood still: it goes on where its arrival puts it, until a
   * report tells exactly.
   */
  resume({ timestamp, arrivalMs }: TappedFrame): void {
    if (this.#firstTimestamp === undefined) return;
    this.#move(arrivalMs - this.#arrivalStartMs - this.#usuallyLateMs - this.#msOf(timestamp));
    this.#lostAtMs = arrivalMs;
  }

  /** Milliseconds of the file at a timestamp of the track. */
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
    // NaN is like no other.
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
      // Reports from before the pause, or made while it lasted, know nothing of it.
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
      // The publisher has set its clock, and nothing happened to the track.
      else this.#referenceMs += offByMs;
    } else if (isNew) {
      this.#reportsOff++;
      if (this.#reportsOff >= REPORTS_AGREEING) this.#move(offByMs);
    }
  }
}
