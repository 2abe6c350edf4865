import { opusSamples } from '@bloom/rtp';
import { ComponentError } from '../errors.js';
import { OggReader, type OggPacket } from './ogg-reader.js';
import { readOpusHead } from './opus-head.js';

export interface OpusPacket {
  data: Buffer;
  /** Samples at 48 kHz. */
  samples: number;
}

/**
 * Turns the bytes of an .ogg file into Opus packets (RFC 7845): those of the first Opus stream and of streams chained
 * to it. Headers are left out; invalid packets are skipped.
 */
export class OpusPackets {
  readonly #ogg = new OggReader();
  #serial = -1;
  #expectsTags = false;
  #skipped = 0;

  get skipped(): number {
    return this.#skipped + this.#ogg.damaged;
  }

  /** Trailing bytes that do not form a whole page yet. */
  get pending(): number {
    return this.#ogg.pending;
  }

  /** @throws ComponentError `BAD_OGG` for a stream that cannot be sent as RTP */
  push(chunk: Buffer): OpusPacket[] {
    return this.#ogg.push(chunk).flatMap((packet) => this.#packet(packet) ?? []);
  }

  /** Called at the end of the file. @throws ComponentError `BAD_OGG` if it contained no Opus */
  end(): void {
    if (this.#serial < 0) throw new ComponentError('BAD_OGG', 'there is no Opus stream in the file');
  }

  #packet({ serial, data }: OggPacket): OpusPacket | undefined {
    if (serial !== this.#serial) {
      if (readOpusHead(data) === undefined) return undefined;
      this.#serial = serial;
      this.#expectsTags = true;
      return undefined;
    }
    if (this.#expectsTags) {
      this.#expectsTags = false;
      if (data.toString('latin1', 0, 8) === 'OpusTags') return undefined;
    }
    const samples = opusSamples(data);
    if (samples === undefined) {
      this.#skipped++;
      return undefined;
    }
    return { data, samples };
  }
}
