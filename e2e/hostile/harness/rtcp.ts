// RTCP packets in which the attack controls every field (RFC 3550, RFC 4585, RFC 5104).

export const Rtcp = {
  sr: 200,
  rr: 201,
  sdes: 202,
  bye: 203,
  app: 204,
  transportFeedback: 205,
  payloadFeedback: 206,
  xr: 207,
} as const;

/** Returns a packet with the length of its body. */
export function rtcp(type: number, count: number, body: Buffer): Buffer {
  return rtcpOfLength(body.length / 4, { type, count }, body);
}

/** Returns a packet whose length field claims this many 32-bit words, whatever its body. */
export function rtcpOfLength(claimed: number, { type, count }: { type: number; count: number }, body: Buffer): Buffer {
  const header = Buffer.from([0x80 | (count & 31), type, 0, 0]);
  header.writeUInt16BE(claimed & 0xffff, 2);
  return Buffer.concat([header, body]);
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, at) => bytes.writeUInt32BE(value >>> 0, at * 4));
  return bytes;
}

/** Requests 17 packets again per entry. */
export function nack(ssrc: number, firsts: readonly number[]): Buffer {
  return rtcp(Rtcp.transportFeedback, 1, words(1, ssrc, ...firsts.map((first) => ((first & 0xffff) << 16) | 0xffff)));
}

export const pli = (ssrc: number): Buffer => rtcp(Rtcp.payloadFeedback, 1, words(1, ssrc));

export function fir(ssrc: number, sequence: number): Buffer {
  return rtcp(Rtcp.payloadFeedback, 4, words(1, 0, ssrc, (sequence & 255) << 24));
}

/** Returns a receiver estimated maximum bitrate with any exponent and mantissa. */
export function remb(ssrcs: readonly number[], exponent: number, mantissa: number): Buffer {
  const rate = ((ssrcs.length & 255) << 24) | ((exponent & 63) << 18) | (mantissa & 0x3ffff);
  return rtcp(Rtcp.payloadFeedback, 15, words(1, 0, 0x52454d42, rate, ...ssrcs));
}

interface PacketRange {
  base: number;
  count: number;
}

/** Transport-wide feedback on `count` packets from `base` on, in the given chunks. */
export function transportCc({ base, count }: PacketRange, chunks: readonly number[], deltas: Buffer): Buffer {
  const packed = Buffer.alloc(chunks.length * 2);
  chunks.forEach((chunk, at) => packed.writeUInt16BE(chunk & 0xffff, at * 2));
  const body = Buffer.concat([words(1, 0, ((base & 0xffff) << 16) | (count & 0xffff), 0x7fffff00), packed, deltas]);
  return rtcp(Rtcp.transportFeedback, 15, Buffer.concat([body, Buffer.alloc((4 - (body.length % 4)) % 4)]));
}
