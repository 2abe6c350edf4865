import type { DatagramSink } from './datagram-sink.js';
import { type SealerCounters, SLOT_HEADROOM } from './packet-sealer.js';

/** Cached views per slot, a power of two. Packets of one round, and often of one frame, have the same length. */
const VIEWS = 32;
/**
 * Output slots in one arena. Free slots form a stack: while sends complete immediately, the same few are reused and
 * stay in the cache with their views. A slot that a sink keeps is unavailable until it is released.
 */
export class Slots {
  /** The counters of the sealer that owns the slots. */
  readonly counters: SealerCounters = { sealed: 0, overruns: 0, oversized: 0, sinkFaults: 0 };
  readonly packetBytes: number;
  readonly count: number;
  readonly #arena: Buffer;
  readonly #base: number;
  readonly #stride: number;
  readonly #free: Int32Array;
  readonly #inUse: Uint8Array;
  #freeCount: number;
  readonly #views: (Buffer | undefined)[];

  /** @param options.tailroom bytes after a packet that sealing needs but does not send */
  constructor(arena: Buffer, options: { base: number; count: number; packetBytes: number; tailroom: number }) {
    const { base, count, packetBytes, tailroom } = options;
    this.#arena = arena;
    this.#base = base;
    this.count = count;
    this.packetBytes = packetBytes;
    this.#stride = Slots.stride(packetBytes, tailroom);
    this.#free = new Int32Array(count);
    for (let i = 0; i < count; i += 1) this.#free[i] = count - 1 - i;
    this.#freeCount = count;
    this.#inUse = new Uint8Array(count);
    this.#views = Array.from({ length: count * VIEWS }, () => undefined);
  }

  static stride(packetBytes: number, tailroom: number): number {
    return Math.ceil((SLOT_HEADROOM + packetBytes + tailroom) / 64) * 64;
  }

  /** Returns the arena offset of the next packet; -1, which is counted, if no slot is free. */
  reserve(): number {
    const slot = this.peek();
    if (slot >= 0) return this.offset(slot);
    this.counters.overruns += 1;
    return -1;
  }

  /** Passes a sealed packet to its sink, and frees the slot unless the sink keeps it. */
  send(slot: number, sink: DatagramSink, length: number): void {
    let left = true;
    try {
      left = sink.send(this.#view(slot, sink.headroom, length), slot);
      this.counters.sealed += 1;
    } catch {
      this.counters.sinkFaults += 1;
    }
    if (left) this.release(slot);
  }

  /** Returns the slot that `take` takes; -1 if none is free. */
  peek(): number {
    return this.#freeCount === 0 ? -1 : this.#free[this.#freeCount - 1]!;
  }

  take(): void {
    this.#freeCount -= 1;
    this.#inUse[this.#free[this.#freeCount]!] = 1;
  }

  /** Frees a slot. Idempotent, so that a late completion cannot free it twice. */
  release(slot: number): void {
    if (slot < 0 || slot >= this.count || this.#inUse[slot] === 0) return;
    this.#inUse[slot] = 0;
    this.#free[this.#freeCount] = slot;
    this.#freeCount += 1;
  }

  /** Returns the arena offset of the packet in a slot. */
  offset(slot: number): number {
    return this.#base + slot * this.#stride + SLOT_HEADROOM;
  }

  /** Returns a view of `headroom` bytes followed by a packet of `length` bytes. */
  #view(slot: number, headroom: number, length: number): Buffer {
    const key = slot * VIEWS + ((length + headroom) & (VIEWS - 1));
    const start = this.offset(slot) - headroom;
    const cached = this.#views[key];
    if (
      cached !== undefined &&
      cached.length === headroom + length &&
      cached.byteOffset === this.#arena.byteOffset + start
    ) {
      return cached;
    }
    const view = this.#arena.subarray(start, start + headroom + length);
    this.#views[key] = view;
    return view;
  }
}
