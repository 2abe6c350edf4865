/** Ogg pages, RFC 3533 section 6. */
const OGG_HEADER_BYTES = 27;
export const OggFlag = { continued: 1, first: 2, last: 4 } as const;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let crc = i << 24;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80000000) !== 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  return crc >>> 0;
});

/** Computes the checksum of a page, treating its checksum field as zero. */
export function oggCrc(page: Buffer): number {
  let crc = 0;
  for (let i = 0; i < page.length; i++) {
    const byte = i >= 22 && i < 26 ? 0 : page[i]!;
    crc = ((crc << 8) ^ CRC_TABLE[((crc >>> 24) ^ byte) & 0xff]!) >>> 0;
  }
  return crc;
}

export interface OggPage {
  flags: number;
  /** Position at the end of the last packet that ends in the page; -1 if none does. */
  granule: bigint;
  serial: number;
  sequence: number;
  /** One value per segment, 0..255; a value below 255 ends a packet. */
  lacing: Uint8Array;
  body: Buffer;
}

export function writePage({ flags, granule, serial, sequence, lacing, body }: OggPage): Buffer {
  const page = Buffer.alloc(OGG_HEADER_BYTES + lacing.length + body.length);
  page.write('OggS', 0, 'latin1');
  page[5] = flags;
  page.writeBigInt64LE(granule, 6);
  page.writeUInt32LE(serial >>> 0, 14);
  page.writeUInt32LE(sequence >>> 0, 18);
  page[26] = lacing.length;
  page.set(lacing, OGG_HEADER_BYTES);
  body.copy(page, OGG_HEADER_BYTES + lacing.length);
  page.writeUInt32LE(oggCrc(page), 22);
  return page;
}

/**
 * Parses the page at the start of `bytes` and returns it with its total length; undefined when more bytes are needed,
 * null when there is no intact page.
 */
export function readPage(bytes: Buffer): { page: OggPage; length: number } | undefined | null {
  const magic = Math.min(4, bytes.length);
  if (bytes.compare(MAGIC, 0, magic, 0, magic) !== 0) return null;
  if (bytes.length < OGG_HEADER_BYTES) return undefined;
  if (bytes[4] !== 0) return null;
  const segments = bytes[26]!;
  if (bytes.length < OGG_HEADER_BYTES + segments) return undefined;
  const lacing = bytes.subarray(OGG_HEADER_BYTES, OGG_HEADER_BYTES + segments);
  let size = 0;
  for (const segment of lacing) size += segment;
  const length = OGG_HEADER_BYTES + segments + size;
  if (bytes.length < length) return undefined;
  if (oggCrc(bytes.subarray(0, length)) !== bytes.readUInt32LE(22)) return null;
  const page: OggPage = {
    flags: bytes[5]!,
    granule: bytes.readBigInt64LE(6),
    serial: bytes.readUInt32LE(14),
    sequence: bytes.readUInt32LE(18),
    lacing,
    body: bytes.subarray(length - size, length),
  };
  return { page, length };
}

const MAGIC = Buffer.from('OggS', 'latin1');
