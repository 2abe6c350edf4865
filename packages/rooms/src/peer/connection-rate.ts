/** Connections that a peer may open in a burst, and per second afterwards. */
const BURST = 30;
const PER_SECOND = 1;

/**
 * Limits how often a peer connects: each connection costs its room a handshake, and every other participant two
 * notifications. Times are in milliseconds.
 */
export class ConnectionRate {
  #left = BURST;
  #refilledAt = 0;

  /** Counts a connection. Returns false when the peer has to wait. */
  take(now: number): boolean {
    this.#left = Math.min(BURST, this.#left + ((now - this.#refilledAt) * PER_SECOND) / 1_000);
    this.#refilledAt = now;
    if (this.#left < 1) return false;
    this.#left -= 1;

    return true;
  }
}
