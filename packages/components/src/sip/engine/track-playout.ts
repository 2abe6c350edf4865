import { Concealer } from './concealment.js';

const CAPACITY_MS = 1000;
/** Initial delay of a track. */
const LEAD_MS = 50;
/** Spare delay on top of what the latest packets of the past seconds needed. */
const SPARE_MS = 30;
/** Further ahead than any network explains: the track's clock has jumped. */
const JUMP_MS = 500;
/** Delay of a track after it was late. */
const LATE_LEAD_MS = 10;
/** Interval between delay reviews. Each one halves the delay beyond the spare. */
const REVIEW_MS = 1000;
const SLACK_MS = 20;
const SEAM_MS = 5;
const TICKS_PER_SECOND = 48_000;

/**
 * Sound of one of the room's tracks on the clock of the mix: a jitter buffer with adaptive delay. Positions are samples
 * since the start of the mix. Losses are concealed; timestamp gaps are silence.
 */
export class TrackPlayout {
  readonly #rate: number;
  readonly #ring: Int16Array;
  readonly #concealer: Concealer;
  /** Offset added to the track's own positions; undefined before its first packet. */
  #offset: number | undefined;
  /** Current position of the mix. */
  #now = 0;
  /** End of the written samples. */
  #end = 0;
  /** Smallest lead of a packet since the last review, in samples. */
  #closest = Number.POSITIVE_INFINITY;
  #reviewAt: number;

  constructor(rate: number) {
    this.#rate = rate;
    this.#ring = new Int16Array(this.#samples(CAPACITY_MS));
    this.#concealer = new Concealer(rate);
    this.#reviewAt = this.#samples(REVIEW_MS);
  }

  /** Buffered sound in ms. */
  get delayMs(): number {
    return (Math.max(0, this.#end - this.#now) * 1000) / this.#rate;
  }

  /** Writes the samples of the packet with this 48 kHz `timestamp`. `lost` means that earlier packets are missing. */
  write(timestamp: number, pcm: Int16Array, lost: boolean): void {
    const own = Math.round((timestamp * this.#rate) / TICKS_PER_SECOND);
    const start = this.#place(own);
    this.#closest = Math.min(this.#closest, start - this.#now);
    this.#concealUpTo(start, lost);
    this.#concealer.accept(pcm);
    this.#put(start, pcm);
  }

  /** Adds the samples now due to `sum`, -32768..32767 each. Returns false if there are none. */
  addTo(sum: Float32Array): boolean {
    const until = this.#now + sum.length;
    if (this.#end < until && this.#offset !== undefined) {
      const from = Math.max(this.#end, this.#now);
      const invented = this.#concealer.fill(until - from);
      if (invented !== undefined) this.#put(from, invented);
    }
    const count = Math.min(this.#end, until) - this.#now;
    const size = this.#ring.length;
    for (let i = 0, slot = this.#now % size; i < count; i++, slot = slot + 1 === size ? 0 : slot + 1) {
      (sum[i] as number) += this.#ring[slot] as number;
    }
    this.#now = until;
    this.#review();
    return count > 0;
  }

  #samples(ms: number): number {
    return (this.#rate * ms) / 1000;
  }

  /** Returns the place of a packet, after moving a track that is late. */
  #place(own: number): number {
    let start = own + (this.#offset ?? Number.NaN);
    const lead = start - this.#now;
    if (!(Math.abs(lead) < this.#samples(JUMP_MS))) start = this.#now + this.#samples(LEAD_MS);
    else if (lead < 0) start = this.#now + this.#samples(LATE_LEAD_MS);
    else return start;
    this.#offset = start - own;
    this.#closest = Number.POSITIVE_INFINITY;
    return start;
  }

  /** Fills the gap between the last packet and this one: concealment for losses, silence for pauses. */
  #concealUpTo(start: number, lost: boolean): void {
    const from = Math.max(this.#end, this.#now);
    if (start <= from) return;
    // Concealment that started when nothing arrived in time continues up to the new place.
    const invented = lost || this.#end === this.#now ? this.#concealer.fill(start - from) : undefined;
    this.#put(from, invented ?? new Int16Array(start - from));
  }

  /** Cross-fades over existing samples, modifying the start of `pcm`. */
  #put(start: number, pcm: Int16Array): void {
    const ring = this.#ring;
    const seam = Math.min(this.#end - start, this.#samples(SEAM_MS), pcm.length);
    for (let i = 0; i < seam; i++) {
      const part = (i + 1) / (seam + 1);
      const there = ring[(start + i) % ring.length] as number;
      pcm[i] = Math.round(there * (1 - part) + (pcm[i] as number) * part);
    }
    const slot = start % ring.length;
    const first = pcm.subarray(0, ring.length - slot);
    ring.set(first, slot);
    ring.set(pcm.subarray(first.length), 0);
    this.#end = start + pcm.length;
  }

  /** Gives up delay that no packet has needed for a while. */
  #review(): void {
    if (this.#now < this.#reviewAt) return;
    this.#reviewAt = this.#now + this.#samples(REVIEW_MS);
    const spare = this.#closest - this.#samples(SPARE_MS);
    if (this.#offset !== undefined && Number.isFinite(spare) && spare > this.#samples(SLACK_MS))
      this.#offset -= Math.round(spare / 2);
    this.#closest = Number.POSITIVE_INFINITY;
  }
}
