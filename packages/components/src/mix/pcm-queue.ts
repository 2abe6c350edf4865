interface Block {
  /** Number of its first sample. */
  at: number;
  /** Interleaved stereo, -32768..32767. */
  samples: Int16Array;
}

/** One track's decoded sound waiting for its place in the mix. Positions are samples at 48 kHz; stereo. */
export class PcmQueue {
  #blocks: Block[] = [];
  #end = 0;

  /** End of the newest block. */
  get end(): number {
    return this.#end;
  }

  /** Appends a block; blocks come in order. */
  push(at: number, samples: Int16Array): void {
    this.#blocks.push({ at, samples });
    this.#end = at + (samples.length >> 1);
  }

  /** Adds the samples starting at `position` to both channels, and drops everything before their end. */
  addTo(left: Float32Array, right: Float32Array, position: number): void {
    const end = position + left.length;
    for (const { at, samples } of this.#blocks) {
      if (at >= end) break;
      const from = Math.max(at, position);
      const to = Math.min(at + (samples.length >> 1), end);
      for (let i = from; i < to; i++) {
        left[i - position]! += samples[2 * (i - at)]! / 32768;
        right[i - position]! += samples[2 * (i - at) + 1]! / 32768;
      }
    }
    this.#blocks = this.#blocks.filter(({ at, samples }) => at + (samples.length >> 1) > end);
  }
}
