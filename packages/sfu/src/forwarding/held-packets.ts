import type { Pacer } from '../bandwidth/pacer.js';

/** Longest time for which packets wait, ms: less than that for which a missing one is expected. */
const MAX_WAIT_MS = 900;

/**
 * Tells which packets of a slot's source wait for room on the client's link. They stay in the publisher's store, and
 * are numbered when they leave: what is no longer wanted by then leaves no gap. Pure.
 */
export class HeldPackets {
  /** First packet that waits; -1 if none does. */
  #first = -1;
  #sinceMs = 0;
  /** Newest packet that has been passed on. */
  #newest = -1;

  /** Starts with this packet of another source. */
  start(sequence: number): void {
    this.#first = -1;
    this.#newest = sequence - 1;
  }

  /** Returns whether a packet that has arrived waits. One that later packets have overtaken does not. */
  holds(sequence: number, pacer: Pacer, nowMs: number): boolean {
    if (this.#first >= 0) return this.includes(sequence);
    if (sequence <= this.#newest || pacer.hasRoom(nowMs)) return false;
    this.#first = sequence;
    this.#sinceMs = nowMs;
    return true;
  }

  includes(sequence: number): boolean {
    return this.#first >= 0 && sequence >= this.#first;
  }

  /** Takes the next packet that waits, up to the newest one of the source; -1 if none does. */
  take(newest: number): number {
    if (this.#first > newest) this.#first = -1;
    return this.#first < 0 ? -1 : this.#first++;
  }

  /** True if packets have waited so long that they leave without room. */
  isOverdue(nowMs: number): boolean {
    return this.#first >= 0 && nowMs - this.#sinceMs >= MAX_WAIT_MS;
  }

  /** Records that a packet is passed on. Returns false if a later one has been. */
  passes(sequence: number): boolean {
    if (sequence <= this.#newest) return false;
    this.#newest = sequence;
    return true;
  }
}
