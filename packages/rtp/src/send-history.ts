import { sequenceDelta } from './unwrap.js';

/**
 * Packets sent on one outbound stream by sequence number, so that a NACK finds the packet in the publisher's store and
 * it can be resent exactly as before. A ring of typed arrays that takes 33 bytes per packet, allocated with the first
 * packet because most streams of a large room carry nothing.
 */
export class SendHistory {
  /** Results of `find`. */
  sequence = 0;
  source = 0;
  sourceSequence = 0;
  timestamp = 0;
  /** The payload numbers passed to `record`. */
  numbers = 0;

  readonly #size: number;
  #sequences = new Float64Array(0);
  #sourceSequences = new Float64Array(0);
  #timestamps = new Uint32Array(0);
  #sources = new Uint8Array(0);
  #numbers = new Int32Array(0);
  #resentAtMs = new Float64Array(0);
  #newest = -1;

  /** `packets`: how many of the newest are remembered, at most 32768. */
  constructor(packets = 512) {
    this.#size = Math.min(packets, 32768);
  }

  #allocate(): void {
    this.#sequences = new Float64Array(this.#size).fill(-1);
    this.#sourceSequences = new Float64Array(this.#size);
    this.#timestamps = new Uint32Array(this.#size);
    this.#sources = new Uint8Array(this.#size);
    this.#numbers = new Int32Array(this.#size);
    this.#resentAtMs = new Float64Array(this.#size);
  }

  /**
   * Records a sent packet. `sequence`: unwrapped outbound number. `source`: the caller's small number (0..255) for the
   * stream it came from. `sourceSequence`: the unwrapped number there. `numbers`: the word of its `PayloadNumbering`.
   */
  record(sequence: number, source: number, sourceSequence: number, timestamp: number, numbers: number): void {
    if (this.#newest < 0) this.#allocate();
    const at = sequence % this.#size;
    if (sequence > this.#newest) this.#newest = sequence;
    this.#sequences[at] = sequence;
    this.#sources[at] = source;
    this.#sourceSequences[at] = sourceSequence;
    this.#timestamps[at] = timestamp;
    this.#numbers[at] = numbers;
    this.#resentAtMs[at] = -Infinity;
  }

  /** Finds the packet sent under this 16-bit number; returns false if it is unknown or too old. */
  find(sequence16: number): boolean {
    if (this.#newest < 0) return false;
    const sequence = this.#newest + sequenceDelta(this.#newest % 65536, sequence16);
    if (sequence < 0 || this.#sequences[sequence % this.#size] !== sequence) return false;
    const at = sequence % this.#size;
    this.sequence = sequence;
    this.source = this.#sources[at]!;
    this.sourceSequence = this.#sourceSequences[at]!;
    this.timestamp = this.#timestamps[at]!;
    this.numbers = this.#numbers[at]!;
    return true;
  }

  /**
   * Returns whether the packet found last may be resent, and marks it as resent. False within one round trip of its
   * last retransmission, because the receiver repeats its NACK before that one can have arrived.
   */
  mayResend(nowMs: number, roundTripMs: number): boolean {
    const at = this.sequence % this.#size;
    if (nowMs - this.#resentAtMs[at]! < roundTripMs) return false;
    this.#resentAtMs[at] = nowMs;
    return true;
  }
}
