import { Decoder, Encoder } from '@evan/opus';

/** Samples per second that are mixed: those of the telephone's codec, so that nothing is ever resampled. */
export type MixRate = 8000 | 48_000;

/** Speech through the telephone; what libopus takes for transparent at that band. */
const BITRATES: Readonly<Record<MixRate, number>> = { 8000: 24_000, 48_000: 40_000 };

/** One mono stream of Opus packets to samples at `rate`, whatever the packets were made of. */
export class OpusDecoder {
  readonly #decoder: Decoder;

  constructor(rate: MixRate) {
    this.#decoder = new Decoder({ channels: 1, sample_rate: rate });
  }

  /** undefined: it is no Opus packet. */
  decode(packet: Uint8Array): Int16Array | undefined {
    try {
      const bytes = this.#decoder.decode(packet);
      // A copy: the library may use its memory again.
      return new Int16Array(bytes.slice().buffer);
    } catch {
      return undefined;
    }
  }
}

/** Mono samples at `rate` to Opus packets, one for each frame of 20 ms. */
export class OpusEncoder {
  readonly #encoder: Encoder;

  constructor(rate: MixRate) {
    this.#encoder = new Encoder({ channels: 1, sample_rate: rate, application: 'voip' });
    this.#encoder.bitrate = BITRATES[rate];
    this.#encoder.complexity = 5;
    // Each packet can stand in for the one before it, should that be lost on the way to a listener.
    this.#encoder.inband_fec = true;
    this.#encoder.packet_loss = 5;
  }

  encode(samples: Int16Array): Buffer {
    return Buffer.from(this.#encoder.encode(samples));
  }
}
