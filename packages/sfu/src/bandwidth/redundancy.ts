/** Period over which loss is measured, and packets that it takes at least. */
const WINDOW_MS = 500;
const SAMPLE = 20;
/** Weights of the last period: loss must be answered at once, and ends only when it has stayed away for a while. */
const RISE = 0.5;
const FALL = 0.05;
/** Loss from which on the packet before is repeated, and the one before that as well. */
const ONE = 0.02;
const TWO = 0.06;
/** Part of these limits below which the loss must fall for less redundancy. */
const HOLD = 0.5;

/** Chooses how much redundancy (RFC 2198) the sound for one client has, by the loss on the way to it. */
export class Redundancy {
  /** Number of earlier packets that each packet repeats: 0 to 2. */
  distance = 0;
  #loss = 0;
  #sinceMs = -1;
  #lost = 0;
  #received = 0;

  /** Takes the number of packets that the client has reported lost and received so far. Called repeatedly. */
  count({ lost, received }: { lost: number; received: number }, nowMs: number): void {
    if (this.#sinceMs < 0) this.#sinceMs = nowMs;
    const newlyLost = lost - this.#lost;
    const total = newlyLost + received - this.#received;
    if (nowMs - this.#sinceMs < WINDOW_MS || total < SAMPLE) return;
    this.#sinceMs = nowMs;
    this.#lost = lost;
    this.#received = received;
    this.measured(newlyLost / total);
  }

  /** Takes the lost part of the packets of the last period or receiver report, 0..1. */
  measured(part: number): void {
    this.#loss += (part > this.#loss ? RISE : FALL) * (part - this.#loss);
    if (this.#loss >= TWO) this.distance = 2;
    else if (this.#loss >= ONE) this.distance = Math.max(1, this.#loss < TWO * HOLD ? 1 : this.distance);
    else if (this.#loss < ONE * HOLD) this.distance = 0;
    else this.distance = Math.min(1, this.distance);
  }
}
