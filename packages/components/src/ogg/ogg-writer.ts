import { writeOpusHead, writeOpusTags } from './opus-head.js';
import { OggFlag, writePage } from './page.js';

const MAX_SEGMENTS = 255;

export interface OggWriterOptions {
  serial: number;
  channels: number;
  /** Maximum samples per page at 48 kHz, which is how much a crash may cost. */
  pageSamples: number;
}

/**
 * Turns Opus packets into an .ogg file (RFC 7845). Each call returns the bytes to append; the file is playable at any
 * time.
 */
export class OggWriter {
  readonly #options: OggWriterOptions;
  #sequence = 0;
  #granule = 0;
  #pending: Buffer[] = [];
  #lacing: number[] = [];
  #pendingSamples = 0;

  constructor(options: OggWriterOptions) {
    this.#options = options;
  }

  /** Number of samples so far. */
  get samples(): number {
    return this.#granule;
  }

  begin(): Buffer {
    const { channels } = this.#options;
    // No pre-skip: the first packet comes from the middle of a call, and nothing should be cut off.
    const head = this.#single(writeOpusHead({ channels, preSkip: 0 }), OggFlag.first);
    return Buffer.concat([head, this.#single(writeOpusTags('Bloom'), 0)]);
  }

  /** Returns the pages completed by this packet, often none. */
  packet(data: Buffer, samples: number): Buffer {
    const segments = lacingOf(data.length);
    const flushed = this.#lacing.length + segments.length > MAX_SEGMENTS ? this.#flush(0) : NOTHING;
    this.#pending.push(data);
    this.#lacing.push(...segments);
    this.#granule += samples;
    this.#pendingSamples += samples;
    const full = this.#pendingSamples >= this.#options.pageSamples ? this.#flush(0) : NOTHING;
    return full.length === 0 ? flushed : Buffer.concat([flushed, full]);
  }

  end(): Buffer {
    return this.#flush(OggFlag.last);
  }

  #flush(flags: number): Buffer {
    if (this.#lacing.length === 0 && flags === 0) return NOTHING;
    const page = this.#page(Buffer.concat(this.#pending), this.#lacing, flags);
    this.#pending = [];
    this.#lacing = [];
    this.#pendingSamples = 0;
    return page;
  }

  #single(packet: Buffer, flags: number): Buffer {
    return this.#page(packet, lacingOf(packet.length), flags);
  }

  #page(body: Buffer, lacing: number[], flags: number): Buffer {
    const sequence = this.#sequence++;
    const granule = BigInt(this.#granule);
    return writePage({ flags, granule, serial: this.#options.serial, sequence, lacing: Uint8Array.from(lacing), body });
  }
}

const NOTHING = Buffer.alloc(0);

function lacingOf(length: number): number[] {
  const lacing = Array.from({ length: Math.floor(length / 255) }, () => 255);
  lacing.push(length % 255);
  return lacing;
}
