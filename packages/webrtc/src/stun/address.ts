import { isIPv4, isIPv6 } from 'node:net';
import { MAGIC_COOKIE } from './constants.js';

/** An IP address and port. `bytes` has 4 or 16 bytes. */
export interface TransportAddress {
  bytes: Uint8Array;
  port: number;
}

const V4_MAPPED_PREFIX = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);

/**
 * Returns the bytes of a literal IPv4 or IPv6 address; undefined for anything else. An IPv4-mapped IPv6 address, which a
 * dual-stack socket reports for an IPv4 client, gives the 4 bytes of the IPv4 address.
 */
export function addressBytes(address: string): Uint8Array | undefined {
  if (isIPv4(address)) return v4Bytes(address);
  const zone = address.indexOf('%');
  const bare = zone < 0 ? address : address.slice(0, zone);
  if (!isIPv6(bare)) return undefined;
  const bytes = v6Bytes(bare);
  return V4_MAPPED_PREFIX.every((byte, i) => bytes[i] === byte) ? bytes.slice(12) : bytes;
}

/** Returns the text of 4 or 16 address bytes; IPv6 without zero compression. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0)).toString(16));
  return groups.join(':');
}

/** Returns the part of an address that one party holds as a whole: an IPv4 address, the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const bytes = addressBytes(address);
  return bytes === undefined
    ? address
    : addressText(bytes.length === 4 ? bytes : bytes.map((byte, i) => (i < 8 ? byte : 0)));
}

export function sameAddress(a: TransportAddress, b: TransportAddress): boolean {
  if (a.port !== b.port || a.bytes.length !== b.bytes.length) return false;
  for (let i = 0; i < a.bytes.length; i++) if (a.bytes[i] !== b.bytes[i]) return false;
  return true;
}

/** Reads the value of an XOR-*-ADDRESS attribute (RFC 8489 section 14.2) at `offset`; returns undefined when it is invalid. */
export function readXorAddress(message: Buffer, offset: number, length: number): TransportAddress | undefined {
  const size = message[offset + 1] === 0x01 ? 4 : message[offset + 1] === 0x02 ? 16 : 0;
  if (size === 0 || length !== 4 + size) return undefined;
  const port = message.readUInt16BE(offset + 2) ^ (MAGIC_COOKIE >>> 16);
  const bytes = new Uint8Array(size);
  // The mask is the magic cookie followed by the transaction id: the header's bytes 4 to 20.
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

function v4Bytes(address: string): Uint8Array {
  return Uint8Array.from(address.split('.'), Number);
}

function v6Bytes(address: string): Uint8Array {
  let text = address;
  const lastColon = text.lastIndexOf(':');
  if (text.includes('.', lastColon)) {
    const tail = v4Bytes(text.slice(lastColon + 1));
    const high = (((tail[0] ?? 0) << 8) | (tail[1] ?? 0)).toString(16);
    const low = (((tail[2] ?? 0) << 8) | (tail[3] ?? 0)).toString(16);
    text = `${text.slice(0, lastColon + 1)}${high}:${low}`;
  }
  const [head = '', tail] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
  const bytes = new Uint8Array(16);
  groups.forEach((group, i) => {
    const value = Number.parseInt(group, 16);
    bytes[i * 2] = value >>> 8;
    bytes[i * 2 + 1] = value & 0xff;
  });
  return bytes;
}
