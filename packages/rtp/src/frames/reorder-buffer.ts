/** One packet waiting for its turn; the payload is the caller's to copy when the buffer behind it is reused. */
export interface OrderedPacket {
  /** Unwrapped sequence number. */
  sequence: number;
  /** Unwrapped RTP timestamp. */
  timestamp: number;
  marker: boolean;
  payload: Buffer;
}

export interface ReorderBufferOptions {
  /** How long a missing packet is waited for, milliseconds. */
  maxDelayMs?: number;
  /** Packets held at most; above it the oldest gap is given up at once. */
  maxPackets?: number;
}

/**
 * Puts the packets of one stream back into order for whoever needs whole frames. A missing packet holds the later ones
 * back until it comes or `maxDelayMs` have passed; then the gap is reported and the rest goes on.
 */
export class ReorderBuffer {
  readonly #maxDelayMs: number;
  readonly #maxPackets: number;
  readonly #waiting = new Map<number, { packet: OrderedPacket; atMs: number }>();
  #next = -1;

  constructor(options: ReorderBufferOptions = {}) {
    this.#maxDelayMs = options.maxDelayMs ?? 150;
    this.#maxPackets = options.maxPackets ?? 1024;
  }

  /** Packets held back. */
  get size(): number {
    return this.#waiting.size;
  }

  push(packet: OrderedPacket, nowMs: number): void {
    if (this.#next < 0) this.#next = packet.sequence;
    // Given up already, or there twice.
    if (packet.sequence < this.#next || this.#waiting.has(packet.sequence)) return;
    this.#waiting.set(packet.sequence, { packet, atMs: nowMs });
  }

  /**
   * Hands out all that is due: `packet` for each in order, `gap` with the number of packets given up before the next.
   * Call it after `push` and from a timer, so that the last packets before a pause get out as well.
   */
  drain(nowMs: number, out: { packet(packet: OrderedPacket): void; gap(missing: number): void }): void {
    while (this.#waiting.size > 0) {
      const head = this.#waiting.get(this.#next);
      if (head) {
        this.#waiting.delete(this.#next);
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
      if (!first || entry.packet.sequence < first.packet.sequence) first = entry;
    }
    return first as { packet: OrderedPacket; atMs: number };
  }
}
