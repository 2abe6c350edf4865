/** RTP packets, RFC 3550 section 5.1, and telephone-event, RFC 4733. */

export interface RtpPacket {
  payloadType: number;
  marker: boolean;
  sequence: number;
  timestamp: number;
  ssrc: number;
  payload: Buffer;
}

/** True for RTCP, which may arrive on the RTP port (RFC 5761 section 4). */
export function isRtcp(data: Buffer): boolean {
  const [first = 0, second = 0] = data;

  return first >> 6 === 2 && second >= 192 && second <= 223;
}

/** Returns undefined for RTCP and for anything that is not an RTP packet. */
export function parseRtp(data: Buffer): RtpPacket | undefined {
  if (data.length < 12) return undefined;
  const first = data[0] as number;
  const second = data[1] as number;
  if (first >> 6 !== 2) return undefined;
  if (isRtcp(data)) return undefined;
  let start = 12 + (first & 0x0f) * 4;
  if (first & 0x10) {
    if (data.length < start + 4) return undefined;
    start += 4 + data.readUInt16BE(start + 2) * 4;
  }
  const padding = first & 0x20 ? (data.at(-1) as number) : 0;
  const end = data.length - padding;
  if (start > end || (first & 0x20 && padding === 0)) return undefined;
  return {
    payloadType: second & 0x7f,
    marker: second >= 0x80,
    sequence: data.readUInt16BE(2),
    timestamp: data.readUInt32BE(4),
    ssrc: data.readUInt32BE(8),
    payload: data.subarray(start, end),
  };
}

export function writeRtp(packet: RtpPacket): Buffer {
  const data = Buffer.allocUnsafe(12 + packet.payload.length);
  data[0] = 0x80;
  data[1] = (packet.marker ? 0x80 : 0) | packet.payloadType;
  data.writeUInt16BE(packet.sequence, 2);
  data.writeUInt32BE(packet.timestamp, 4);
  data.writeUInt32BE(packet.ssrc, 8);
  packet.payload.copy(data, 12);
  return data;
}

const DIGITS = '0123456789*#ABCD';

/** Returns the key in a telephone-event payload; undefined for other events and malformed payloads. */
export function digitOf(payload: Buffer): string | undefined {
  return payload.length >= 4 ? DIGITS[payload[0] as number] : undefined;
}
