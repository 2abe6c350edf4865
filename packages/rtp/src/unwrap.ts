/** Returns the signed distance from `from` to `to` on the 16-bit circle, -32768..32767. */
export function sequenceDelta(from: number, to: number): number {
  return ((to - from) << 16) >> 16;
}

/** Returns the signed distance from `from` to `to` on the 32-bit circle. */
export function timestampDelta(from: number, to: number): number {
  return (to - from) | 0;
}

/**
 * Turns 16-bit sequence numbers into ones that never wrap, following the newest. The first keeps its value plus 65536,
 * so that late packets from before it stay positive.
 */
export class SequenceUnwrapper {
  #newest = -1;

  /** Newest sequence number, unwrapped; -1 before the first. */
  get newest(): number {
    return this.#newest;
  }

  unwrap(sequence: number): number {
    const unwrapped = this.peek(sequence);
    if (unwrapped > this.#newest) this.#newest = unwrapped;
    return unwrapped;
  }

  /** Unwraps like `unwrap`, but does not follow. */
  peek(sequence: number): number {
    if (this.#newest < 0) return sequence + 65536;
    const unwrapped = this.#newest + sequenceDelta(this.#newest % 65536, sequence);
    // Only a forged or very old packet lies a whole circle before the first one.
    return unwrapped < 0 ? unwrapped + 65536 : unwrapped;
  }
}

/** Like SequenceUnwrapper, but for 32-bit RTP timestamps; the first keeps its value plus 2^32. */
export class TimestampUnwrapper {
  #newest = -1;

  unwrap(timestamp: number): number {
    if (this.#newest < 0) {
      this.#newest = timestamp + 4294967296;
      return this.#newest;
    }
    const unwrapped = this.#newest + timestampDelta(this.#newest % 4294967296, timestamp);
    if (unwrapped > this.#newest) this.#newest = unwrapped;
    return unwrapped;
  }
}
