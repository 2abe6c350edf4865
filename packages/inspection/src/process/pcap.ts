/** Capture files for Wireshark and tcpdump: the classic pcap format with raw IP packets. */
import { isIPv6 } from 'node:net';

/** Little-endian, microseconds, version 2.4. */
const MAGIC = 0xa1_b2_c3_d4;
const SNAP_LENGTH = 65_535;
/** Packets start with their IP header (LINKTYPE_RAW). */
const LINK_TYPE = 101;
const RECORD_HEADER = 16;
const UDP_HEADER = 8;
const UDP = 17;

export interface Endpoint {
  address: string;
  port: number;
}

export interface Packet {
  /** Milliseconds since the epoch. */
  atMs: number;
  from: Endpoint;
  to: Endpoint;
  /** The captured start of the payload. */
  shown: Uint8Array;
  /** Length of the whole payload. */
  length: number;
}

/** Returns the header of a capture file. */
export function fileHeader(): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(MAGIC, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(SNAP_LENGTH, 16);
  header.writeUInt32LE(LINK_TYPE, 20);

  return header;
}

/** Returns a record: a UDP datagram, truncated to the captured start. */
export function record({ atMs, from, to, shown, length }: Packet): Buffer {
  const v6 = isIPv6(from.address) || isIPv6(to.address);
  const ip = v6 ? ipv6Header(from, to, length) : ipv4Header(from, to, length);
  const udp = Buffer.alloc(UDP_HEADER);
  udp.writeUInt16BE(from.port, 0);
  udp.writeUInt16BE(to.port, 2);
  udp.writeUInt16BE(Math.min(0xff_ff, UDP_HEADER + length), 4);

  const micros = Math.round(atMs * 1_000);
  const captured = ip.length + UDP_HEADER + shown.length;
  const head = Buffer.alloc(RECORD_HEADER);
  head.writeUInt32LE(Math.floor(micros / 1e6) % 2 ** 32, 0);
  head.writeUInt32LE(micros % 1e6, 4);
  head.writeUInt32LE(captured, 8);
  head.writeUInt32LE(ip.length + UDP_HEADER + length, 12);

  return Buffer.concat([head, ip, udp, shown]);
}

function ipv4Header(from: Endpoint, to: Endpoint, length: number): Buffer {
  const header = Buffer.alloc(20);
  header[0] = 0x45;
  header.writeUInt16BE(Math.min(0xff_ff, 20 + UDP_HEADER + length), 2);
  header.writeUInt16BE(0x40_00, 6);
  header[8] = 64;
  header[9] = UDP;
  ipv4Bytes(from.address).copy(header, 12);
  ipv4Bytes(to.address).copy(header, 16);
  let sum = 0;
  for (let at = 0; at < 20; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xff_ff) sum = (sum & 0xff_ff) + (sum >>> 16);
  header.writeUInt16BE(~sum & 0xff_ff, 10);

  return header;
}

function ipv6Header(from: Endpoint, to: Endpoint, length: number): Buffer {
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(Math.min(0xff_ff, UDP_HEADER + length), 4);
  header[6] = UDP;
  header[7] = 64;
  ipv6Bytes(from.address).copy(header, 8);
  ipv6Bytes(to.address).copy(header, 24);

  return header;
}

/** Returns zeros for text that is not an address. */
function ipv4Bytes(address: string): Buffer {
  const parts = address.split('.').map(Number);
  const valid = parts.length === 4 && parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255);

  return Buffer.from(valid ? parts : [0, 0, 0, 0]);
}

function ipv6Bytes(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  if (!isIPv6(address)) {
    // One end of a path may be written as IPv4 and the other as IPv6.
    bytes.writeUInt16BE(0xff_ff, 10);
    ipv4Bytes(address).copy(bytes, 12);
    return bytes;
  }
  const plain = (address.split('%')[0] as string).replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = '', tail] = plain.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  groups(head).forEach((group, i) => bytes.writeUInt16BE(group, 2 * i));
  const last = groups(tail ?? '');
  last.forEach((group, i) => bytes.writeUInt16BE(group, 16 - 2 * (last.length - i)));

  return bytes;
}
