import { isIP } from 'node:net';
import { addressText } from './address.js';
import type { Endpoint } from './trusted-proxies.js';

/** Longest version 1 header, including its line end. */
const MAX_V1_BYTES = 107;
/** Longest version 2 header that is read; real ones have a few TLVs after the addresses. */
const MAX_V2_BYTES = 4 * 1024;
const V2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const V2_FIXED_BYTES = 16;
const V1_START = Buffer.from('PROXY ');

export type ProxyHeader =
  | 'incomplete'
  | 'invalid'
  /** `client` is undefined for the proxy's own connections, such as health checks. */
  | { byteLength: number; client: Endpoint | undefined };

/**
 * Reads the PROXY protocol header, version 1 or 2, at the start of a connection
 * (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt).
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsLike(bytes, V2_SIGNATURE)) return readV2(bytes);

  return startsLike(bytes, V1_START) ? readV1(bytes) : 'invalid';
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);

  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf('\r\n');
  if (end < 0) return bytes.length < MAX_V1_BYTES ? 'incomplete' : 'invalid';
  const [, protocol, address = '', , port = '', destinationPort = '', ...more] = bytes
    .toString('latin1', 0, end)
    .split(' ');
  const byteLength = end + 2;
  if (protocol === 'UNKNOWN') return { byteLength, client: undefined };
  const family = protocol === 'TCP4' ? 4 : protocol === 'TCP6' ? 6 : undefined;
  const isComplete = isPort(port) && isPort(destinationPort) && more.length === 0;
  if (family === undefined || isIP(address) !== family || !isComplete) return 'invalid';

  return { byteLength, client: { address, port: Number(port) } };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
}

function readV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_FIXED_BYTES) return 'incomplete';
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 0xf];
  const [family, transport] = [bytes.readUInt8(13) >> 4, bytes.readUInt8(13) & 0xf];
  const byteLength = V2_FIXED_BYTES + bytes.readUInt16BE(14);
  if (version !== 2 || command > 1 || byteLength > MAX_V2_BYTES) return 'invalid';
  if (bytes.length < byteLength) return 'incomplete';
  if (command === 0) return { byteLength, client: undefined };
  const size = family === 1 ? 4 : family === 2 ? 16 : undefined;
  // Unspecified family or transport: the proxy does not know the client.
  if (size === undefined || transport !== 1) return { byteLength, client: undefined };
  if (byteLength < V2_FIXED_BYTES + 2 * size + 4) return 'invalid';

  return {
    byteLength,
    client: {
      address: addressText(bytes.subarray(V2_FIXED_BYTES, V2_FIXED_BYTES + size)),
      port: bytes.readUInt16BE(V2_FIXED_BYTES + 2 * size),
    },
  };
}
