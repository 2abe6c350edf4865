/** Factor by which media may exceed the rate that is known: an estimate is below what its link carries. */
const MARGIN = 1.25;
/** Time at that rate for which media may be ahead of it, ms: more than a tick, less than the queues of links. */
const BURST_MS = 40;
/** A limit is not given up for so long after congestion, ms: the link carries no more. */
const HELD_MS = 2_000;

/**
 * Spreads bursts over the time that a narrow link takes to carry them. A key picture sent at once is longer than the
 * link's queue: what does not fit is lost, and the receiver shows nothing until it has been repaired. Pure.
 */
export class Pacer {
  /** `Infinity` while no limit of the link is known. */
  #bytesPerMs = Infinity;
  /** Bytes that the link has not carried yet at that rate. */
  #bytes = 0;
  #atMs = 0;
  #congestedAtMs = Number.NEGATIVE_INFINITY;
  #lapsedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Takes what the link is known to carry, bits per second (`Infinity` if that is unknown), and the time of its latest
   * congestion, ms.
   */
  limit(bps: number, congestedAtMs: number): void {
    this.#congestedAtMs = congestedAtMs;
    this.#bytesPerMs = congestedAtMs < this.#lapsedAtMs ? Infinity : (MARGIN * bps) / 8_000;
  }

  /**
   * Gives up the limit until the next congestion, because packets have waited too long for it: where little is sent,
   * the limit shows that little, and not what the link carries. Right after congestion it does show that.
   */
  lapse(nowMs: number): void {
    if (nowMs - this.#congestedAtMs < HELD_MS) return;
    this.#lapsedAtMs = nowMs;
    this.#bytesPerMs = Infinity;
  }

  sent(bytes: number, nowMs: number): void {
    if (this.#bytesPerMs === Infinity) return;
    this.#drain(nowMs);
    this.#bytes += bytes;
  }

  /** True if another packet may be sent now, of whatever size. */
  hasRoom(nowMs: number): boolean {
    if (this.#bytesPerMs === Infinity) return true;
    this.#drain(nowMs);
    return this.#bytes < BURST_MS * this.#bytesPerMs;
  }

  #drain(nowMs: number): void {
    this.#bytes = Math.max(0, this.#bytes - (nowMs - this.#atMs) * this.#bytesPerMs);
    this.#atMs = nowMs;
  }
}
