import type { ReportBlock } from './reader.js';

/**
 * Receive statistics of one stream, RFC 3550 sections 6.4.1, A.3 and A.8. Sequence numbers are unwrapped.
 */
export class ReceiveStatistics {
  packets = 0;
  bytes = 0;
  /** Packets that came by retransmission only. */
  repairs = 0;
  readonly #clockRate: number;
  #base = -1;
  #highest = -1;
  #expectedPrior = 0;
  #receivedPrior = 0;
  #jitter = 0;
  #lastTransit = Number.NaN;
  #senderReport = 0;
  #senderReportAtMs = 0;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  /** Packets expected so far minus packets received; duplicates and retransmissions lower it. */
  get lost(): number {
    return this.#base < 0 ? 0 : this.#highest - this.#base + 1 - this.packets;
  }

  get jitterMs(): number {
    return (this.#jitter * 1000) / this.#clockRate;
  }

  /** Counts one packet of the stream. `bytes` is the payload size by the caller's measure. */
  received(sequence: number, timestamp: number, bytes: number, nowMs: number): void {
    if (this.#base < 0) this.#base = sequence;
    if (sequence > this.#highest) this.#highest = sequence;
    this.packets += 1;
    this.bytes += bytes;

    // Transit differences are taken on the 32-bit circle. Reduce the clock first, to keep whole units exact.
    const arrival = Math.round((nowMs * this.#clockRate) / 1000) % 4294967296;
    const transit = (arrival - timestamp) | 0;
    if (!Number.isNaN(this.#lastTransit)) {
      const difference = Math.abs((transit - this.#lastTransit) | 0);
      this.#jitter += (difference - this.#jitter) / 16;
    }
    this.#lastTransit = transit;
  }

  /** Counts a retransmission as received; it says nothing about jitter. */
  repaired(bytes: number): void {
    this.repairs += 1;
    this.packets += 1;
    this.bytes += bytes;
  }

  senderReport(ntpSeconds: number, ntpFraction: number, nowMs: number): void {
    this.#senderReport = (((ntpSeconds & 0xffff) << 16) | (ntpFraction >>> 16)) >>> 0;
    this.#senderReportAtMs = nowMs;
  }

  /** Fills a report block and starts the next interval. Returns false before the first packet. */
  report(ssrc: number, nowMs: number, out: ReportBlock): boolean {
    if (this.#base < 0) return false;
    const expected = this.#highest - this.#base + 1;
    const expectedInterval = expected - this.#expectedPrior;
    const receivedInterval = this.packets - this.#receivedPrior;
    this.#expectedPrior = expected;
    this.#receivedPrior = this.packets;
    const lostInterval = expectedInterval - receivedInterval;
    out.ssrc = ssrc;
    out.fractionLost =
      expectedInterval <= 0 || lostInterval <= 0
        ? 0
        : Math.min(255, Math.floor((lostInterval * 256) / expectedInterval));
    out.cumulativeLost = expected - this.packets;
    // The unwrapper starts one circle up, whereas the roll-over count on the wire starts at 0.
    out.highestSequence = (this.#highest - Math.floor(this.#base / 65536) * 65536) % 4294967296;
    out.jitter = Math.floor(this.#jitter);
    out.lastSenderReport = this.#senderReport;
    out.delaySinceLastSenderReport =
      this.#senderReport === 0 ? 0 : Math.round(((nowMs - this.#senderReportAtMs) * 65536) / 1000) % 4294967296;
    return true;
  }
}
