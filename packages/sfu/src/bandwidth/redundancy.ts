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
/** Standing delay from which on the loss is that of a full queue, ms. */
const CONGESTED_MS = 150;
/** Pause after that, doubled each time that redundancy filled the queue, ms. */
const PAUSE_MS = 4_000;
const PAUSE_MAX_MS = 120_000;

/**
 * Chooses how much redundancy (RFC 2198) the sound for one client has, by the loss on the way to it. Redundancy doubles
 * or triples the rate of the sound. Against the loss of a full queue it would keep that queue full, so there is none.
 */
export class Redundancy {
  /** Number of earlier packets that each packet repeats: 0 to 2. */
  distance = 0;
  #loss = 0;
  #sinceMs = -1;
  #lost = 0;
  #received = 0;
  #pauseMs = PAUSE_MS;
  #pausedUntilMs = 0;

  /** Takes the packets that the client has reported lost and received so far, and the `StandingDelay`, repeatedly. */
  count({ lost, received }: { lost: number; received: number }, nowMs: number, standingMs: number): void {
    if (this.#sinceMs < 0) this.#sinceMs = nowMs;
    const newlyLost = lost - this.#lost;
    const total = newlyLost + received - this.#received;
    if (nowMs - this.#sinceMs < WINDOW_MS || total < SAMPLE) return;
    this.#sinceMs = nowMs;
    this.#lost = lost;
    this.#received = received;
    this.measured(newlyLost / total, nowMs, standingMs);
  }

  /** Takes the lost part of the packets of the last period or receiver report, 0..1, and the `StandingDelay`. */
  measured(part: number, nowMs: number, standingMs: number): void {
    if (standingMs >= CONGESTED_MS) this.#pause(nowMs);
    if (nowMs < this.#pausedUntilMs) return;
    this.#loss += (part > this.#loss ? RISE : FALL) * (part - this.#loss);
    if (this.#loss >= TWO) this.distance = 2;
    else if (this.#loss >= ONE) this.distance = Math.max(1, this.#loss < TWO * HOLD ? 1 : this.distance);
    else if (this.#loss >= ONE * HOLD) this.distance = Math.min(1, this.distance);
    else if (this.distance > 0) {
      this.distance = 0;
      this.#pauseMs = PAUSE_MS;
    }
  }

  #pause(nowMs: number): void {
    if (this.distance > 0) this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MAX_MS);
    this.#pausedUntilMs = nowMs + this.#pauseMs;
    this.distance = 0;
    this.#loss = 0;
  }
}
