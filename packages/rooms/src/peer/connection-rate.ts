/** Connections that a peer may open at once, and per second afterwards. */
const BURST = 30;
const PER_SECOND = 1;

/**
 * Bounds how often one peer connects: each connection costs its room a handshake, and everyone else in it two notifications.
 * Times are in milliseconds.
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
