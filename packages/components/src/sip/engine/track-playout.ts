import { Concealer } from './concealment.js';

const CAPACITY_MS = 1000;
/** A track begins so long before it is due. */
const LEAD_MS = 50;
/** Room for the next late packet, on top of what the latest of the past seconds has shown to be needed. */
const SPARE_MS = 30;
/** Further ahead than any network: the track's clock has jumped. */
const JUMP_MS = 500;
/** A track that came too late goes on so long before it is due. */
const LATE_LEAD_MS = 10;
/** The delay is looked at so often. What is more than that beyond the spare is taken back, by halves. */
const REVIEW_MS = 1000;
const SLACK_MS = 20;
const SEAM_MS = 5;
const TICKS_PER_SECOND = 48_000;

/**
 * The sound of one track of the room, put in order on the clock of the mix: a jitter buffer that finds its delay by itself.
 * Positions are samples of the mix since its start. What is lost is concealed; what the track leaves out is silence.
 */
export class TrackPlayout {
  readonly #rate: number;
  readonly #ring: Int16Array;
  readonly #concealer: Concealer;
  /** Added to the track's own positions; undefined before its first packet. */
  #offset: number | undefined;
  /** Where the mix is. */
  #now = 0;
  /** What is written ends here. */
  #end = 0;
  /** The smallest lead of a packet since the last review, samples. */
  #closest = Number.POSITIVE_INFINITY;
  #reviewAt: number;

  constructor(rate: number) {
    this.#rate = rate;
    this.#ring = new Int16Array(this.#samples(CAPACITY_MS));
    this.#concealer = new Concealer(rate);
    this.#reviewAt = this.#samples(REVIEW_MS);
  }

  /** How much sound waits to be played, in ms. */
  get delayMs(): number {
    return (Math.max(0, this.#end - this.#now) * 1000) / this.#rate;
  }

  /** Takes the samples of one packet that belong to `timestamp`, 48 kHz. `lost`: others before it never came. */
  write(timestamp: number, pcm: Int16Array, lost: boolean): void {
    const own = Math.round((timestamp * this.#rate) / TICKS_PER_SECOND);
    const start = this.#place(own);
    this.#closest = Math.min(this.#closest, start - this.#now);
    this.#concealUpTo(start, lost);
    this.#concealer.heard(pcm);
    this.#put(start, pcm);
  }

  /** Adds what is due now to `sum`, -32768..32767 each; false: nothing is. */
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

  /** Where the packet belongs; a track that is late for its place gets another one. */
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

  /** What lies between the last packet and this one: sound that was lost, or silence that was never sent. */
  #concealUpTo(start: number, lost: boolean): void {
    const from = Math.max(this.#end, this.#now);
    if (start <= from) return;
    // Behind what was invented because nothing came in time more of it is needed, until the new place begins.
    const invented = lost || this.#end === this.#now ? this.#concealer.fill(start - from) : undefined;
    this.#put(from, invented ?? new Int16Array(start - from));
  }

  /** Over what is there already, which ends softly; changes the beginning of `pcm` to that end. */
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

  /** Delay that no packet has needed for a while is given back. */
  #review(): void {
    if (this.#now < this.#reviewAt) return;
    this.#reviewAt = this.#now + this.#samples(REVIEW_MS);
    const spare = this.#closest - this.#samples(SPARE_MS);
    if (this.#offset !== undefined && Number.isFinite(spare) && spare > this.#samples(SLACK_MS))
      this.#offset -= Math.round(spare / 2);
    this.#closest = Number.POSITIVE_INFINITY;
  }
}
