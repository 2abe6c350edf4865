/**
 * Slots whose datagrams the kernel did not accept immediately. They become free when the socket's queue has drained,
 * which is checked once per turn of the event loop.
 */
export class KeptSlots {
  readonly #queued: () => number;
  readonly #onFree: (slot: number) => void;
  #slots: number[] = [];

  /**
   * @param queued returns the number of datagrams that the socket still holds
   * @param onFree called when a slot may be reused
   */
  constructor(queued: () => number, onFree: (slot: number) => void) {
    this.#queued = queued;
    this.#onFree = onFree;
  }

  add(slot: number): void {
    if (this.#slots.push(slot) === 1) setImmediate(() => this.#check());
  }

  #check(): void {
    if (this.#queued() > 0) {
      setImmediate(() => this.#check());
      return;
    }
    const slots = this.#slots;
    this.#slots = [];
    for (const slot of slots) this.#onFree(slot);
  }
}
