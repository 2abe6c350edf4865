/**
 * Bytes that the objects of a stored packet or picture part take besides its payload. Without them, packets of a few
 * bytes would count for almost nothing.
 */
export const PART_BYTES = 256;

/** One packet to be ordered. Callers that reuse the buffer must copy the payload. */
export interface OrderedPacket {
  /** Unwrapped sequence number. */
  sequence: number;
  /** Unwrapped RTP timestamp. */
  timestamp: number;
  marker: boolean;
  payload: Buffer;
}

export interface ReorderBufferOptions {
  /** Time to wait for a missing packet, ms. */
  maxDelayMs?: number;
  /** Limit on held packets; beyond it the oldest gap is given up immediately. */
  maxPackets?: number;
}

/**
 * Orders the packets of one stream for consumers of whole frames. A missing packet holds back later ones until it
 * arrives or `maxDelayMs` has passed; then the gap is reported and the rest follows.
 */
export class ReorderBuffer {
  readonly #maxDelayMs: number;
  readonly #maxPackets: number;
  readonly #waiting = new Map<number, { packet: OrderedPacket; atMs: number }>();
  #next = -1;
  #bytes = 0;

  constructor(options: ReorderBufferOptions = {}) {
    this.#maxDelayMs = options.maxDelayMs ?? 150;
    this.#maxPackets = options.maxPackets ?? 1024;
  }

  /** Packets held back. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Bytes held back, including `PART_BYTES` for each packet. */
  get heldBytes(): number {
    return this.#bytes + this.#waiting.size * PART_BYTES;
  }

  push(packet: OrderedPacket, nowMs: number): void {
    if (this.#next < 0) this.#next = packet.sequence;
    // Already given up, or a duplicate.
    if (packet.sequence < this.#next || this.#waiting.has(packet.sequence)) return;
    this.#waiting.set(packet.sequence, { packet, atMs: nowMs });
    this.#bytes += packet.payload.length;
  }

  /**
   * Delivers everything that is due: `packet` for each in order, `gap` with the number of packets given up before the
   * next. Call it after `push` and from a timer, so that the last packets before a pause are delivered too.
   */
  drain(nowMs: number, out: { packet(packet: OrderedPacket): void; gap(missing: number): void }): void {
    while (this.#waiting.size > 0) {
      const head = this.#waiting.get(this.#next);
      if (head !== undefined) {
        this.#waiting.delete(this.#next);
        this.#bytes -= head.packet.payload.length;
        this.#next += 1;
        out.packet(head.packet);
        continue;
      }
      const first = this.#first();
      if (this.#waiting.size < this.#maxPackets && nowMs - first.atMs < this.#maxDelayMs) return;
      out.gap(first.packet.sequence - this.#next);
      this.#next = first.packet.sequence;
    }
  }

  #first(): { packet: OrderedPacket; atMs: number } {
    let first: { packet: OrderedPacket; atMs: number } | undefined;
    for (const entry of this.#waiting.values()) {
      if (first === undefined || entry.packet.sequence < first.packet.sequence) first = entry;
    }
    return first as { packet: OrderedPacket; atMs: number };
  }
}
