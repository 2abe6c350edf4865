/** Length of the common header of a packet, and of the beginning of its chunks. */
export const HEADER = 12;
const CHUNK_HEADER = 4;
export const DATA_HEADER = 16;
export const SACK_HEADER = 16;
const FORWARD_TSN_HEADER = 8;
/** Bytes of a packet. Those of clients fit into a datagram of their network. */
const MAX_PACKET = 2_048;
/** Messages of one byte that fit into a datagram. */
const MAX_CHUNKS = 64;
const PARAMETER_HEADER = 4;
const MAX_PARAMETERS = 32;
/** Types of chunks. */
export const DATA = 0;
const INIT = 1;
export const SACK = 3;
const RECONFIG = 130;
const FORWARD_TSN = 192;
/** Where the parameters of a chunk begin: of INIT and INIT ACK; of HEARTBEAT, its ACK, ABORT, ERROR and RECONFIG. */
const PARAMETERS_AT = new Map([
  ...[INIT, 2].map((type) => [type, 20] as const),
  ...[4, 5, 6, 9, RECONFIG].map((type) => [type, CHUNK_HEADER] as const),
]);
/** Requests and responses of one RECONFIG (RFC 6525 section 3.1). */
const MAX_REQUESTS = 2;
/** Streams of one association, each way; browsers use no more. */
export const MAX_STREAMS = 1_024;
/** Messages in flight that one SACK may speak of. */
export const MAX_GAP_SPAN = 4_096;

/** What the checks have to know of an association. */
export interface PacketContext {
  /** A client has no reason to start over then. */
  established: boolean;
  /** Number of the chunk that we send next. */
  nextTsn: number;
}

/**
 * Returns whether a packet may be handed to the SCTP of werift, which trusts its fields and takes as much time as they ask for: one SACK
 * of 16 KiB with forged gaps would keep it busy for a minute (RFC 9260 section 3). Only DATA comes more than once in a packet.
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

/** A SACK speaks of what we have sent, so that it costs no more than that. */
function isSafeSack(packet: Buffer, at: number, length: number, nextTsn: number): boolean {
  if (length < SACK_HEADER) return false;
  const gaps = packet.readUInt16BE(at + 12);
  const duplicates = packet.readUInt16BE(at + 14);
  if (length !== SACK_HEADER + 4 * (gaps + duplicates)) return false;
  const ahead = (nextTsn - 1 - packet.readUInt32BE(at + 4)) >>> 0;
  // Beyond half of the numbers it is behind (RFC 1982): never sent.
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

/** werift never gets past a parameter whose length is zero, and takes memory until there is none. */
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
