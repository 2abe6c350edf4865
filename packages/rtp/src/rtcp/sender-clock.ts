import type { SenderInfo } from './reader.js';

/** Seconds from the NTP epoch (1900) to the Unix epoch, RFC 3550 section 4. */
const NTP_OFFSET_SECONDS = 2208988800;

/** Returns Unix milliseconds as NTP seconds and fraction. */
export function toNtp(unixMs: number): { seconds: number; fraction: number } {
  const seconds = Math.floor(unixMs / 1000);
  const fraction = Math.floor(((unixMs - seconds * 1000) / 1000) * 4294967296);
  return { seconds: (seconds + NTP_OFFSET_SECONDS) % 4294967296, fraction };
}

/** Returns the middle 32 bits of an NTP time, as used in LSR. */
export function ntpMiddle(seconds: number, fraction: number): number {
  return (((seconds & 0xffff) << 16) | (fraction >>> 16)) >>> 0;
}

/**
 * The publisher's clock of one stream, from its sender reports. Maps RTP timestamps to the publisher's wall clock;
 * subscribers get reports on the same wall clock, so that audio and video stay in sync.
 */
export class SenderClock {
  readonly #clockRate: number;
  #ntpSeconds = 0;
  #ntpFraction = 0;
  #rtpTimestamp = 0;
  #updatedAtMs = -1;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  get known(): boolean {
    return this.#updatedAtMs >= 0;
  }

  update(info: SenderInfo, nowMs: number): void {
    // A sender without a clock writes 0 (RFC 3550 section 6.4.1), which carries no time.
    if (info.ntpSeconds === 0 && info.ntpFraction === 0) return;
    this.#ntpSeconds = info.ntpSeconds;
    this.#ntpFraction = info.ntpFraction;
    this.#rtpTimestamp = info.rtpTimestamp;
    this.#updatedAtMs = nowMs;
  }

  /**
   * Fills in the times of a sender report for now: the publisher's NTP time plus the time since its report, and the RTP
   * timestamp of that moment in the *publisher's* stream; the caller maps it to the subscriber's
   * (`ForwardMapper.mapTimestamp`). Returns false before the first report.
   */
  report(nowMs: number, out: SenderInfo): boolean {
    if (this.#updatedAtMs < 0) return false;
    const elapsedMs = nowMs - this.#updatedAtMs;
    const fraction = this.#ntpFraction + Math.round((elapsedMs * 4294967296) / 1000);
    out.ntpSeconds = (this.#ntpSeconds + Math.floor(fraction / 4294967296)) >>> 0;
    // `>>> 0` also wraps negative numbers: a component may send a frame before it is due.
    out.ntpFraction = fraction >>> 0;
    out.rtpTimestamp = (this.#rtpTimestamp + Math.round((elapsedMs * this.#clockRate) / 1000)) >>> 0;
    return true;
  }
}

/**
 * Measures round-trip times from a receiver's report blocks. Remembers when the newest few sender reports were sent,
 * because their NTP times are on the publisher's clock, not ours.
 */
export class RoundTripClock {
  readonly #middles = new Uint32Array(8);
  readonly #sentAtMs = new Float64Array(8);
  #count = 0;

  sent(ntpSeconds: number, ntpFraction: number, nowMs: number): void {
    const at = this.#count % this.#middles.length;
    this.#middles[at] = ntpMiddle(ntpSeconds, ntpFraction);
    this.#sentAtMs[at] = nowMs;
    this.#count += 1;
  }

  /** Returns milliseconds, or -1 if the report quotes an unknown sender report. RFC 3550 section 6.4.1. */
  roundTripMs(lastSenderReport: number, delaySinceLastSenderReport: number, nowMs: number): number {
    if (lastSenderReport === 0) return -1;
    const kept = Math.min(this.#count, this.#middles.length);
    for (let i = 0; i < kept; i += 1) {
      if (this.#middles[i] !== lastSenderReport) continue;
      const roundTrip = nowMs - this.#sentAtMs[i]! - (delaySinceLastSenderReport * 1000) / 65536;
      return Math.max(0, roundTrip);
    }
    return -1;
  }
}
