import { ForwardMapper, Vp8Mapper } from '@bloom/rtp';

interface SlotNumberingOptions {
  clockRate: number;
  /** A random unsigned 32-bit integer. */
  random(): number;
}

/**
 * Everything that must go on counting for one outbound SSRC: a number used twice under one SRTP key is lost at the
 * receiver, so this outlives the slot and serves the next track that is given the same SSRC.
 */
export class SlotNumbering {
  readonly mapper: ForwardMapper;
  readonly vp8 = new Vp8Mapper();
  rtxSequence: number;
  /** Sender report counters: packets and payload bytes, modulo 2^32 on the wire. */
  packetsSent = 0;
  octetsSent = 0;

  constructor({ clockRate, random }: SlotNumberingOptions) {
    // Below 2^15: a receiver that misses the first packets cannot guess the roll-over counter wrong.
    this.mapper = new ForwardMapper({ clockRate, firstSequence: random() & 0x7fff, firstTimestamp: random() });
    this.rtxSequence = random() & 0x7fff;
  }
}
