const HEADER = 12;
const CHUNK_HEADER = 4;
const DATA_HEADER = 16;
const SACK_HEADER = 16;
const FORWARD_TSN_HEADER = 8;
const MAX_CHUNKS = 256;
const DATA = 0;
const INIT = 1;
const SACK = 3;
const FORWARD_TSN = 192;
/** Streams of one association, each way; browsers use no more. */
export const MAX_STREAMS = 1_024;
/** Messages in flight that one SACK may speak of. */
export const MAX_GAP_SPAN = 4_096;

/**
 * Returns whether a packet may be handed to the SCTP of werift, which trusts its fields: one SACK of 16 KiB with forged gaps
 * would keep it busy for a minute (RFC 9260 section 3). `established`: a client has no reason to start over then.
 */
export function isSafePacket(packet: Buffer, established: boolean): boolean {
  if (packet.length < HEADER + CHUNK_HEADER) return false;
  let chunks = 0;
  let hasInit = false;
  for (let at = HEADER; at < packet.length; ) {
    chunks++;
    if (packet.length - at < CHUNK_HEADER || chunks > MAX_CHUNKS) return false;
    const length = packet.readUInt16BE(at + 2);
    const end = at + length;
    if (length < CHUNK_HEADER || end > packet.length) return false;
    const type = packet[at];
    if (type === DATA && (length <= DATA_HEADER || packet.readUInt16BE(at + 8) >= MAX_STREAMS)) return false;
    if (type === SACK && !isSafeSack(packet, at, length)) return false;
    if (type === FORWARD_TSN && !isSafeForward(packet, at, length)) return false;
    if (type === INIT) {
      if (established) return false;
      hasInit = true;
    }
    // Padding to four bytes is not part of the length.
    at = end + ((4 - (length & 3)) & 3);
  }
  return !hasInit || chunks === 1;
}

function isSafeSack(packet: Buffer, at: number, length: number): boolean {
  if (length < SACK_HEADER) return false;
  const gaps = packet.readUInt16BE(at + 12);
  const duplicates = packet.readUInt16BE(at + 14);
  if (length !== SACK_HEADER + 4 * (gaps + duplicates)) return false;
  let before = 0;
  for (let gap = 0; gap < gaps; gap++) {
    const start = packet.readUInt16BE(at + SACK_HEADER + 4 * gap);
    const end = packet.readUInt16BE(at + SACK_HEADER + 4 * gap + 2);
    if (start <= before || end < start || end > MAX_GAP_SPAN) return false;
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
