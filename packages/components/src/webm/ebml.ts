/** Elements of EBML (RFC 8794), of which WebM files consist: an id, a length, and a body. */

/** Ids of the elements in our files, with their length markers: RFC 8794 section 11.3 and RFC 9559 section 5. */
export const Id = {
  ebml: 0x1a45dfa3,
  ebmlVersion: 0x4286,
  ebmlReadVersion: 0x42f7,
  ebmlMaxIdLength: 0x42f2,
  ebmlMaxSizeLength: 0x42f3,
  docType: 0x4282,
  docTypeVersion: 0x4287,
  docTypeReadVersion: 0x4285,
  void: 0xec,
  segment: 0x18538067,
  seekHead: 0x114d9b74,
  seek: 0x4dbb,
  seekId: 0x53ab,
  seekPosition: 0x53ac,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  duration: 0x4489,
  muxingApp: 0x4d80,
  writingApp: 0x5741,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackUid: 0x73c5,
  trackType: 0x83,
  flagLacing: 0x9c,
  codecId: 0x86,
  video: 0xe0,
  pixelWidth: 0xb0,
  pixelHeight: 0xba,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  simpleBlock: 0xa3,
  cues: 0x1c53bb6b,
  cuePoint: 0xbb,
  cueTime: 0xb3,
  cueTrackPositions: 0xb7,
  cueTrack: 0xf7,
  cueClusterPosition: 0xf1,
} as const;

/** Bytes of the longest id and of the longest length. */
const MAX_ID_BYTES = 4;
const MAX_LENGTH_BYTES = 8;

/** An element whose length takes four bytes, so up to 256 MiB of body. */
export function element(id: number, ...parts: readonly Buffer[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(0x1000_0000 + parts.reduce((sum, part) => sum + part.length, 0));

  return Buffer.concat([idBytes(id), length, ...parts]);
}

export function idBytes(id: number): Buffer {
  return Buffer.from(id.toString(16), 'hex');
}

/** A whole number from 0 to 2^53 - 1. */
export function unsigned(id: number, value: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeBigUInt64BE(BigInt(value));

  return element(id, body);
}

export function text(id: number, value: string): Buffer {
  return element(id, Buffer.from(value, 'latin1'));
}

export function float(id: number, value: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeDoubleBE(value);

  return element(id, body);
}

export interface ElementHeader {
  id: number;
  /** Bytes of the body; Infinity if it is not known. */
  length: number;
  /** Bytes of the header itself. */
  headerBytes: number;
}

/** Returns the header at `at`; `short` if it is incomplete, `invalid` if it cannot be one. */
export function readHeader(bytes: Buffer, at: number): ElementHeader | 'short' | 'invalid' {
  if (at >= bytes.length) return 'short';
  const idLength = Math.clz32(bytes[at]!) - 23;
  if (idLength > MAX_ID_BYTES) return 'invalid';
  const lengthAt = at + idLength;
  if (lengthAt >= bytes.length) return 'short';
  const lengthBytes = Math.clz32(bytes[lengthAt]!) - 23;
  if (lengthBytes > MAX_LENGTH_BYTES) return 'invalid';
  const headerBytes = idLength + lengthBytes;
  if (at + headerBytes > bytes.length) return 'short';
  let length = bytes[lengthAt]! & (0xff >> lengthBytes);
  let isUnknown = length === 0xff >> lengthBytes;
  for (let i = lengthAt + 1; i < at + headerBytes; i++) {
    isUnknown &&= bytes[i] === 0xff;
    length = length * 256 + bytes[i]!;
  }

  return { id: bytes.readUIntBE(at, idLength), length: isUnknown ? Number.POSITIVE_INFINITY : length, headerBytes };
}

/** Returns an unsigned number; undefined if it is longer than eight bytes or above 2^53 - 1. */
export function readUnsigned(body: Buffer): number | undefined {
  if (body.length > 8) return undefined;
  let value = 0;
  for (const byte of body) value = value * 256 + byte;

  return Number.isSafeInteger(value) ? value : undefined;
}
