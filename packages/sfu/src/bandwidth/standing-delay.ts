/** Time in which the fastest packet tells how long all of them wait, ms. */
const WINDOW_MS = 500;
/** The fastest packet of this time, and of as much before it, has not waited, ms. */
const BASE_MS = 60_000;

/**
 * Measures how long packets wait in a queue that does not empty, as the bottleneck of a congested link has one. Pure:
 * the caller passes delays with any constant offset, such as those between two clocks, or round trips.
 */
export class StandingDelay {
  /** Time that even the fastest packet of the last half second waited, ms. */
  ms = 0;
  #least = Infinity;
  #windowAtMs = 0;
  #base = Infinity;
  #nextBase = Infinity;
  #baseAtMs = 0;

  /** Takes the delay of one packet and its time of arrival, ms. */
  sample(delayMs: number, atMs: number): void {
    if (this.#base === Infinity) {
      this.#windowAtMs = atMs;
      this.#baseAtMs = atMs;
    }
    if (atMs - this.#baseAtMs >= BASE_MS) {
      this.#baseAtMs = atMs;
      this.#base = this.#nextBase;
      this.#nextBase = Infinity;
    }
    this.#base = Math.min(this.#base, delayMs);
    this.#nextBase = Math.min(this.#nextBase, delayMs);
    this.#least = Math.min(this.#least, delayMs);
    if (atMs - this.#windowAtMs < WINDOW_MS) return;
    this.#windowAtMs = atMs;
    this.ms = this.#least - this.#base;
    this.#least = Infinity;
  }

  /** Starts over, after the clock of the delays has jumped. */
  reset(): void {
    this.ms = 0;
    this.#least = Infinity;
    this.#base = Infinity;
    this.#nextBase = Infinity;
  }
}
