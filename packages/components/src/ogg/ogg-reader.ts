import { ComponentError } from '../errors.js';
import { OggFlag, readPage, type OggPage } from './page.js';

/** Cover pictures in the comment header may be this large; no Opus packet comes close. */
const MAX_PACKET_BYTES = 16 * 1024 * 1024;

export interface OggPacket {
  serial: number;
  data: Buffer;
}

/**
 * Turns the bytes of an Ogg file into whole packets, however they are laced or continued across pages (RFC 3533). A
 * damaged page is skipped together with the packet it interrupts; only an oversized packet is an error.
 */
export class OggReader {
  #rest: Buffer = Buffer.alloc(0);
  /** Parts of the incomplete packet, by stream. */
  readonly #open = new Map<number, { parts: Buffer[]; bytes: number; sequence: number }>();
  #damaged = 0;

  /** Number of places where bytes were skipped. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Trailing bytes that do not form a whole page yet. */
  get pending(): number {
    return this.#rest.length;
  }

  /** @throws ComponentError `BAD_OGG` for a packet over 16 MB */
  push(chunk: Buffer): OggPacket[] {
    const packets: OggPacket[] = [];
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length > 0) {
      const read = readPage(bytes);
      if (read === undefined) break;
      if (read === null) {
        this.#damaged++;
        const next = bytes.indexOf('OggS', 1, 'latin1');
        // The last three bytes may start the next page.
        bytes = next < 0 ? bytes.subarray(Math.max(1, bytes.length - 3)) : bytes.subarray(next);
        if (next < 0) break;
        continue;
      }
      this.#page(read.page, packets);
      bytes = bytes.subarray(read.length);
    }
    this.#rest = Buffer.from(bytes);
    return packets;
  }

  #page({ flags, serial, sequence, lacing, body }: OggPage, packets: OggPacket[]): void {
    let open = this.#open.get(serial);
    const continues = (flags & OggFlag.continued) !== 0;
    if (open !== undefined && (!continues || (open.sequence + 1) >>> 0 !== sequence)) {
      // A page in between was lost, and the packet with it.
      open = undefined;
    }
    // The tail of a packet whose start is missing.
    let orphan = continues && open === undefined;
    let parts = open?.parts ?? [];
    let bytes = open?.bytes ?? 0;
    let at = 0;
    let isOpen = open !== undefined;
    for (const size of lacing) {
      bytes += size;
      if (bytes > MAX_PACKET_BYTES)
        throw new ComponentError('BAD_OGG', `an Ogg packet has more than ${bytes - 1} bytes`);
      parts.push(body.subarray(at, at + size));
      at += size;
      isOpen = size === 255;
      if (isOpen) continue;
      if (!orphan) packets.push({ serial, data: Buffer.concat(parts) });
      orphan = false;
      parts = [];
      bytes = 0;
    }
    if (isOpen && !orphan) {
      // Copy: the page's memory belongs to the caller.
      this.#open.set(serial, { parts: [Buffer.concat(parts)], bytes, sequence });
    } else {
      this.#open.delete(serial);
    }
    if (this.#open.size > 64) this.#open.clear();
  }
}
