/** Rate of a growing number of bytes, smoothed exponentially. */
export class SmoothedRate {
  /** Bits per second. */
  bps = 0;
  private measuredBytes = 0;

  /** `weight`: of the latest interval, 0 to 1. */
  constructor(private readonly weight: number) {}

  /** To be called at a steady interval with all bytes so far. */
  measure(bytes: number, intervalMs: number): void {
    const bps = ((bytes - this.measuredBytes) * 8000) / intervalMs;
    this.measuredBytes = bytes;
    this.bps += this.weight * (bps - this.bps);
  }
}
