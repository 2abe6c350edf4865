/** Lengths in bytes: the common header of a packet, then the headers of its chunks. */
export const HEADER = 12;
const CHUNK_HEADER = 4;
export const DATA_HEADER = 16;
export const SACK_HEADER = 16;
const FORWARD_TSN_HEADER = 8;
/** Bound on a packet in bytes. Clients' packets fit into one datagram of their network. */
const MAX_PACKET = 2_048;
/** Bound on the chunks of a packet: as many one-byte messages as fit into a datagram. */
const MAX_CHUNKS = 64;
const PARAMETER_HEADER = 4;
const MAX_PARAMETERS = 32;
/** Chunk types. */
export const DATA = 0;
const INIT = 1;
export const SACK = 3;
const RECONFIG = 130;
const FORWARD_TSN = 192;
/** Offset of the parameters in a chunk: INIT and INIT ACK; then HEARTBEAT, HEARTBEAT ACK, ABORT, ERROR and RECONFIG. */
const PARAMETERS_AT = new Map([
  ...[INIT, 2].map((type) => [type, 20] as const),
  ...[4, 5, 6, 9, RECONFIG].map((type) => [type, CHUNK_HEADER] as const),
]);
/** Bound on the requests and responses in one RECONFIG (RFC 6525 section 3.1). */
const MAX_REQUESTS = 2;
/** Bound on the streams of one association in each direction; browsers use no more. */
export const MAX_STREAMS = 1_024;
/** Bound on the chunks in flight that one SACK may report. */
export const MAX_GAP_SPAN = 4_096;

/** State of an association that the checks depend on. */
export interface PacketContext {
  /** True once connected: a client then has no reason to send INIT. */
  established: boolean;
  /** TSN of the next chunk that we send. */
  nextTsn: number;
}

/**
 * Returns true if a packet is safe for werift's SCTP, which trusts its fields and spends as much time as they demand:
 * one SACK of 16 KiB with forged gaps would keep it busy for a minute (RFC 9260 section 3). Only DATA may occur more
 * than once in a packet.
 */
export function isSafePacket(packet: Buffer, { established, nextTsn }: PacketContext): boolean {
  if (packet.length < HEADER + CHUNK_HEADER || packet.length > MAX_PACKET) return false;
  let chunks = 0;
  const others: number[] = [];
  for (let at = HEADER; at < packet.length; ) {
    chunks++;
    if (packet.length - at < CHUNK_HEADER || chunks > MAX_CHUNKS) return false;
    const length = packet.readUInt16BE(at + 2);
    const end = at + length;
    if (length < CHUNK_HEADER || end > packet.length) return false;
    const type = packet[at]!;
    if (type === DATA) {
      if (length <= DATA_HEADER || packet.readUInt16BE(at + 8) >= MAX_STREAMS) return false;
    } else {
      if (others.includes(type)) return false;
      others.push(type);
    }
    if (type === SACK && !isSafeSack(packet, at, length, nextTsn)) return false;
    if (type === FORWARD_TSN && !isSafeForward(packet, at, length)) return false;
    const parameters = PARAMETERS_AT.get(type);
    const most = type === RECONFIG ? MAX_REQUESTS : MAX_PARAMETERS;
    if (parameters !== undefined && !areSafeParameters(packet, at + parameters, end, most)) return false;
    if (type === INIT && established) return false;
    // Padding to four bytes is not part of the length.
    at = end + ((4 - (length & 3)) & 3);
  }
  return !others.includes(INIT) || chunks === 1;
}

/** Returns true if a SACK reports only chunks that we have sent, which bounds the cost of processing it. */
function isSafeSack(packet: Buffer, at: number, length: number, nextTsn: number): boolean {
  if (length < SACK_HEADER) return false;
  const gaps = packet.readUInt16BE(at + 12);
  const duplicates = packet.readUInt16BE(at + 14);
  if (length !== SACK_HEADER + 4 * (gaps + duplicates)) return false;
  const ahead = (nextTsn - 1 - packet.readUInt32BE(at + 4)) >>> 0;
  // Beyond half the number space means behind (RFC 1982): we never sent it.
  if (ahead >= 0x8000_0000) return false;
  let before = 0;
  for (let gap = 0; gap < gaps; gap++) {
    const start = packet.readUInt16BE(at + SACK_HEADER + 4 * gap);
    const end = packet.readUInt16BE(at + SACK_HEADER + 4 * gap + 2);
    if (start <= before || end < start || end > Math.min(ahead, MAX_GAP_SPAN)) return false;
    before = end;
  }
  return true;
}

function isSafeForward(packet: Buffer, at: number, length: number): boolean {
  if (length < FORWARD_TSN_HEADER || (length - FORWARD_TSN_HEADER) % 4 !== 0) return false;
  for (let stream = at + FORWARD_TSN_HEADER; stream < at + length; stream += 4) {
    if (packet.readUInt16BE(stream) >= MAX_STREAMS) return false;
  }
  return true;
}

/** Returns true if all parameters are valid. werift loops on one with length zero until memory runs out. */
function areSafeParameters(packet: Buffer, from: number, end: number, most: number): boolean {
  let parameters = 0;
  for (let at = from; at < end; ) {
    parameters++;
    if (end - at < PARAMETER_HEADER || parameters > most) return false;
    const length = packet.readUInt16BE(at + 2);
    if (length < PARAMETER_HEADER || at + length > end) return false;
    at += (length + 3) & ~3;
  }
  return true;
}
