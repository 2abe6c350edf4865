/** Writes H.264 sequence parameter sets that no encoder would produce. */

export interface ParameterSetOptions {
  id?: number;
  profile?: number;
  level?: number;
  /** Size in macroblocks of 16 x 16 pixels. */
  columns?: number;
  rows?: number;
  chroma?: number;
  bitDepth?: number;
  references?: number;
  interlaced?: boolean;
  /** `max_num_reorder_frames` and `max_dec_frame_buffering`; absent = no restriction. */
  restriction?: readonly [reordered: number, buffered: number];
  /** Includes everything the usability information may hold before the restriction. */
  full?: boolean;
}

class BitWriter {
  #bits = '';

  bits(value: number, count: number): this {
    this.#bits += value.toString(2).padStart(count, '0');

    return this;
  }

  ue(...values: number[]): this {
    for (const value of values) {
      const code = (value + 1).toString(2);
      this.#bits += '0'.repeat(code.length - 1) + code;
    }

    return this;
  }

  /** Returns the bytes, with a stop bit and emulation prevention. */
  end(): number[] {
    const bits = `${this.#bits}1`;
    const bytes: number[] = [];
    let zeros = 0;
    for (let at = 0; at < bits.length; at += 8) {
      const byte = Number.parseInt(bits.slice(at, at + 8).padEnd(8, '0'), 2);
      if (zeros >= 2 && byte <= 3) {
        bytes.push(3);
        zeros = 0;
      }
      bytes.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }

    return bytes;
  }
}

/** Defaults: 320 x 180 at level 4 with one reference. */
export function parameterSet(options: ParameterSetOptions = {}): Buffer {
  const { id = 0, profile = 66, level = 40, columns = 20, rows = 12, references = 1, interlaced = false } = options;
  const { chroma = 1, bitDepth = 8, restriction, full = false } = options;
  const out = new BitWriter().bits(profile, 8).bits(0, 8).bits(level, 8).ue(id);
  if (profile >= 100) {
    out.ue(chroma);
    if (chroma === 3) out.bits(0, 1);
    out.ue(bitDepth - 8, bitDepth - 8).bits(0, 1);
    // One scaling list that ends immediately; the others are absent.
    out.bits(1, 1).bits(1, 1).ue(16);
    out.bits(0, chroma === 3 ? 11 : 7);
  }
  out.ue(0, 0, 4, references).bits(0, 1);
  out.ue(columns - 1, (interlaced ? rows / 2 : rows) - 1).bits(interlaced ? 0 : 1, 1);
  if (interlaced) out.bits(0, 1);
  out.bits(1, 1).bits(0, 1);
  out.bits(restriction === undefined ? 0 : 1, 1);
  if (restriction !== undefined) {
    if (full) {
      out.bits(1, 1).bits(255, 8).bits(16, 16).bits(9, 16).bits(1, 1).bits(0, 1);
      out.bits(1, 1).bits(5, 3).bits(0, 1).bits(1, 1).bits(1, 8).bits(1, 8).bits(1, 8).bits(1, 1).ue(0, 0);
      out.bits(1, 1).bits(1, 32).bits(60, 32).bits(1, 1);
      for (let buffers = 0; buffers < 2; buffers++) {
        out.bits(1, 1).ue(1).bits(0, 8);
        for (let i = 0; i < 2; i++) out.ue(1_000, 2_000).bits(0, 1);
        out.bits(0, 20);
      }
      out.bits(0, 1).bits(0, 1);
    } else {
      out.bits(0, 8);
    }
    out
      .bits(1, 1)
      .bits(1, 1)
      .ue(2, 1, 15, 15, ...restriction);
  }

  return Buffer.from([0x67, ...out.end()]);
}
