import { isIPv4, isIPv6 } from 'node:net';

const V4_MAPPED_PREFIX = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);

/**
 * Returns the bytes of a literal IPv4 or IPv6 address; undefined for anything else. An IPv4-mapped IPv6 address, which
 * a dual-stack socket reports for an IPv4 client, yields the 4 bytes of the IPv4 address.
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

/** Returns the network that a single party usually owns: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const bytes = addressBytes(address);
  return bytes === undefined
    ? address
    : addressText(bytes.length === 4 ? bytes : bytes.map((byte, i) => (i < 8 ? byte : 0)));
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
