import { MAGIC_COOKIE } from './constants.js';

/** An IP address and port. `bytes` has 4 or 16 bytes. */
export interface TransportAddress {
  bytes: Uint8Array;
  port: number;
}

export function sameAddress(a: TransportAddress, b: TransportAddress): boolean {
  if (a.port !== b.port || a.bytes.length !== b.bytes.length) return false;
  for (let i = 0; i < a.bytes.length; i++) if (a.bytes[i] !== b.bytes[i]) return false;
  return true;
}

/** Reads the value of an XOR-*-ADDRESS attribute (RFC 8489 section 14.2) at `offset`; undefined if it is invalid. */
export function readXorAddress(message: Buffer, offset: number, length: number): TransportAddress | undefined {
  const size = message[offset + 1] === 0x01 ? 4 : message[offset + 1] === 0x02 ? 16 : 0;
  if (size === 0 || length !== 4 + size) return undefined;
  const port = message.readUInt16BE(offset + 2) ^ (MAGIC_COOKIE >>> 16);
  const bytes = new Uint8Array(size);
  // The mask is the magic cookie followed by the transaction id: bytes 4 to 20 of the header.
  for (let i = 0; i < size; i++) bytes[i] = (message[offset + 4 + i] ?? 0) ^ (message[4 + i] ?? 0);
  return { bytes, port };
}

/** Writes the value of an XOR-*-ADDRESS attribute and returns its length (8 or 20). */
export function writeXorAddress(out: Buffer, offset: number, address: TransportAddress): number {
  const { bytes, port } = address;
  out[offset] = 0;
  out[offset + 1] = bytes.length === 4 ? 0x01 : 0x02;
  out.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), offset + 2);
  for (let i = 0; i < bytes.length; i++) out[offset + 4 + i] = (bytes[i] ?? 0) ^ (out[4 + i] ?? 0);
  return 4 + bytes.length;
}
