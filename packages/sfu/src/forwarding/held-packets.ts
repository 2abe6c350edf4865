import type { Pacer } from '../bandwidth/pacer.js';
import type { InboundStream } from './inbound-stream.js';

/** Longest time for which a packet waits, ms: less than that for which a missing one is expected. */
const MAX_WAIT_MS = 900;
/** Packets without media that are remembered while they wait. The numbers of more of them stay missing. */
const MAX_EMPTY = 256;

type HeldSource = Pick<InboundStream, 'store' | 'newest' | 'openEnd'>;

/**
 * Tells which packets of a slot's source wait for room on the client's link. They stay in the publisher's store, and
 * are numbered when they leave: what is no longer wanted by then leaves no gap. Pure.
 */
export class HeldPackets {
  /** First packet that waits; -1 if none does. */
  #first = -1;
  /** Newest packet that has been passed on. */
  #newest = -1;
  /** Packets without media among those that wait. Created with the first one. */
  #empty: Set<number> | undefined;

  /** Starts with this packet of another source. */
  start(sequence: number): void {
    this.#forget();
    this.#newest = sequence - 1;
  }

  #forget(): void {
    this.#first = -1;
    this.#empty?.clear();
  }

  /** Returns whether a packet that has arrived waits. One that later packets have overtaken does not. */
  holds(sequence: number, pacer: Pacer, nowMs: number): boolean {
    if (this.waits) return sequence >= this.#first;
    if (sequence <= this.#newest || pacer.hasRoom(nowMs)) return false;
    this.#first = sequence;
    return true;
  }

  /** False if no packet waits. */
  get waits(): boolean {
    return this.#first >= 0;
  }

  /** Returns whether a packet that has arrived without media waits. */
  holdsEmpty(sequence: number): boolean {
    if (!this.waits || sequence < this.#first) return false;
    this.#empty ??= new Set();
    if (this.#empty.size < MAX_EMPTY) this.#empty.add(sequence);
    return true;
  }

  /** Returns whether the next packet that waits may leave: there is room, or it can wait no longer. */
  mayLeave({ store, newest, openEnd }: HeldSource, pacer: Pacer, nowMs: number): boolean {
    if (!this.waits || this.#first === openEnd) return false;
    // A missing packet needs no room.
    if (pacer.hasRoom(nowMs) || !store.find(this.#first, nowMs)) return true;
    if (store.find(this.#first, nowMs, MAX_WAIT_MS)) return store.isCrowded(this.#first, newest);
    pacer.lapse(nowMs);
    return true;
  }

  /** Takes the next packet that waits, up to the newest one of the source; -1 if none does. */
  take(newest: number): number {
    if (this.#first > newest) this.#forget();
    return this.#first < 0 ? -1 : this.#first++;
  }

  /** Passes over the packets before this one. */
  passOver(sequence: number): void {
    if (this.#first >= 0) this.#first = Math.max(this.#first, sequence);
  }

  /** True if a packet that has been taken carries no media. */
  isEmpty(sequence: number): boolean {
    return this.#empty?.has(sequence) === true;
  }

  /** Records that a packet is passed on. Returns false if a later one has been. */
  passes(sequence: number): boolean {
    if (sequence <= this.#newest) return false;
    this.#newest = sequence;
    return true;
  }
}

/** A slot whose packets may wait. */
interface HoldingSlot {
  /** Sends the next packet that waits, if it may leave. Returns false if none does. */
  sendHeld(nowMs: number): boolean;
  readonly hasHeld: boolean;
  fault(error: unknown): void;
}

/** Sends what may leave, of each slot in turn. Returns whether more waits. */
export function sendHeld(slots: ReadonlyMap<string, HoldingSlot>, nowMs: number): boolean {
  let waits = false;
  for (let sends = true; sends; ) {
    [sends, waits] = [false, false];
    for (const slot of slots.values()) {
      try {
        sends = slot.sendHeld(nowMs) || sends;
      } catch (error) {
        // A fault of one slot must not hold up the others.
        slot.fault(error);
      }
      waits ||= slot.hasHeld;
    }
  }
  return waits;
}
