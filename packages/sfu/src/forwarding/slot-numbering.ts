import { ForwardMapper, type PayloadFormat, type PayloadNumbering } from '@bloom/rtp';

interface SlotNumberingOptions {
  clockRate: number;
  /** Returns a random unsigned 32-bit integer. */
  random(): number;
}

/**
 * Counters of one outbound SSRC. They outlive the slot and serve the next track on the same SSRC, because receivers
 * drop a sequence number that is used twice under one SRTP key.
 */
export class SlotNumbering {
  readonly mapper: ForwardMapper;
  readonly #payloads = new Map<PayloadFormat, PayloadNumbering | undefined>();
  rtxSequence: number;
  /** Sender report counters: packets and payload bytes, modulo 2^32 on the wire. */
  packetsSent = 0;
  octetsSent = 0;

  constructor({ clockRate, random }: SlotNumberingOptions) {
    // Below 2^15, so that a receiver that misses the first packets still guesses the roll-over counter correctly.
    this.mapper = new ForwardMapper({ clockRate, firstSequence: random() & 0x7fff, firstTimestamp: random() });
    this.rtxSequence = random() & 0x7fff;
  }

  /** Returns the payload numbering for this format, or undefined if payloads are sent unchanged. */
  payloadsOf(format: PayloadFormat): PayloadNumbering | undefined {
    if (!this.#payloads.has(format)) this.#payloads.set(format, format.createNumbering());
    return this.#payloads.get(format);
  }
}
