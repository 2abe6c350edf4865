import { Decoder, Encoder } from '@evan/opus';

/** Sample rate of the mix, which matches the phone's codec so that nothing is resampled. */
export type MixRate = 8000 | 48_000;

/** Bitrates at which libopus is transparent for telephone speech. */
const BITRATES: Readonly<Record<MixRate, number>> = { 8000: 24_000, 48_000: 40_000 };

/** Decodes one mono stream of Opus packets to samples at `rate`, whatever rate it was encoded at. */
export class OpusDecoder {
  readonly #decoder: Decoder;

  constructor(rate: MixRate) {
    this.#decoder = new Decoder({ channels: 1, sample_rate: rate });
  }

  /** Returns undefined for an invalid packet. */
  decode(packet: Uint8Array): Int16Array | undefined {
    try {
      const bytes = this.#decoder.decode(packet);
      // Copy: the library may reuse its memory.
      return new Int16Array(bytes.slice().buffer);
    } catch {
      return undefined;
    }
  }
}

/** Encodes mono samples at `rate` to Opus packets, one per 20 ms frame. */
export class OpusEncoder {
  readonly #encoder: Encoder;

  constructor(rate: MixRate) {
    this.#encoder = new Encoder({ channels: 1, sample_rate: rate, application: 'voip' });
    this.#encoder.bitrate = BITRATES[rate];
    this.#encoder.complexity = 5;
    // Each packet can replace the previous one if that is lost.
    this.#encoder.inband_fec = true;
    this.#encoder.packet_loss = 5;
  }

  encode(samples: Int16Array): Buffer {
    return Buffer.from(this.#encoder.encode(samples));
  }
}
