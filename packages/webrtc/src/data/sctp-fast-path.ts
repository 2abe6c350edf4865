/** Reads and writes the bulk of all traffic, one message or its acknowledgement, without werift's objects. */
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import type { ChannelKind } from './dcep.js';
import { type Chunk, FIRST_FRAGMENT, following, LAST_FRAGMENT, type SctpInternals } from './mended-sctp.js';
import { DATA, DATA_HEADER, HEADER, SACK, SACK_HEADER } from './sctp-packet.js';

const UNORDERED = 0x04;
/** Message bytes carried by one packet. */
const FRAGMENT_BYTES = 1_200;
/** Bound on the packets sent in response to one event. */
const MAX_BURST = 4;
/** Bound on the gaps and duplicates that one SACK reports: as many as fit into a packet (RFC 9260 section 3.3.4). */
const MAX_REPORTS = 300;
/** Returned by methods whose work is already done. */
export const DONE = Promise.resolve();

/**
 * Queues a message in fragments and sends as much as the windows allow. werift's own `send` assigns the twenty fields
 * of each fragment one by one and then awaits the whole queue, which takes longer than encrypting the message.
 */
export function sendMessage(
  sctp: SctpInternals,
  stream: number,
  protocol: number,
  data: Buffer,
  { ordered, maxRetransmits, maxLifetimeMs }: ChannelKind,
): void {
  const sequence = ordered ? (sctp.outboundStreamSeq[stream] ?? 0) : 0;
  const expiry = maxLifetimeMs === undefined ? undefined : (Date.now() + maxLifetimeMs) / 1_000;
  for (let at = 0; at < data.length; at += FRAGMENT_BYTES) {
    const userData = data.length <= FRAGMENT_BYTES ? data : data.subarray(at, at + FRAGMENT_BYTES);
    const isLast = at + FRAGMENT_BYTES >= data.length;
    sctp.outboundQueue.push({
      type: DATA,
      flags: (ordered ? 0 : UNORDERED) | (at === 0 ? FIRST_FRAGMENT : 0) | (isLast ? LAST_FRAGMENT : 0),
      tsn: sctp.localTsn,
      streamId: stream,
      streamSeqNum: sequence,
      protocol,
      userData,
      bookSize: userData.length,
      expiry,
      maxRetransmits,
      abandoned: false,
      acked: false,
      retransmit: false,
      misses: 0,
      sentCount: 0,
      sentTime: undefined,
    });
    sctp.localTsn = following(sctp.localTsn);
  }
  if (ordered) sctp.outboundStreamSeq[stream] = (sequence + 1) & 0xffff;
  const transmitted = sctp.transmit();
  if (transmitted !== DONE) transmitted.catch(() => undefined);
}

/**
 * Writes DATA and SACK packets in one pass; werift handles all others. werift copies a message four times per packet,
 * and fails to send a SACK with gaps when TSNs wrap around.
 */
export function writeQuickly(sctp: SctpInternals): void {
  const sendChunk = sctp.sendChunk.bind(sctp);
  sctp.sendChunk = (chunk) => {
    if (!isData(chunk)) return sendChunk(chunk);
    return sctp.state === 'closed' ? DONE : sctp.transport.send(dataPacket(sctp, chunk));
  };
  sctp.sendSack = () => {
    if (sctp.isStopped || !sctp.sackNeeded) return DONE;
    const packet = sackPacket(sctp);
    acknowledged(sctp);
    return sctp.transport.send(packet);
  };
}

function acknowledged(sctp: SctpInternals): void {
  sctp.sackNeeded = false;
  sctp.sackImmediate = false;
  sctp.sackPacketCount = 0;
  sctp.sackDuplicates = [];
}

function isData(chunk: { readonly type: number }): chunk is Chunk {
  return chunk.type === DATA;
}

/**
 * Sends as much of the queue as the windows allow, synchronously. werift needs several promises per packet; its own
 * method still handles all retransmissions. Calls `onTransmitted` instead of emitting werift's `flush` event.
 */
export function transmitQuickly(sctp: SctpInternals, onTransmitted: () => void): void {
  const transmit = sctp.transmit.bind(sctp);
  sctp.transmit = () => {
    const isSimple = !sctp.transmitting && sctp.forwardTsnChunk === undefined && sctp.fastRecoveryExit === undefined;
    if (!isSimple || sctp.sentQueue.some(({ retransmit }) => retransmit)) return transmit();
    if (sctp.isStopped) return DONE;
    // A burst of at most four packets (RFC 9260 section 6.1).
    const window = Math.min(sctp.flightSize + MAX_BURST * FRAGMENT_BYTES, sctp.cwnd);
    // Allow one packet in flight despite a closed window (section 6.1 A): the client may not announce its reopening.
    while (sctp.outboundQueue.length > 0 && sctp.flightSize < window && (sctp.peerRwnd > 0 || sctp.flightSize === 0)) {
      const chunk = sctp.outboundQueue[0]!;
      if (chunk.bookSize > sctp.peerRwnd && sctp.flightSize > 0) break;
      sctp.outboundQueue.shift();
      sctp.sentQueue.push(chunk);
      sctp.flightSize += chunk.bookSize;
      chunk.sentCount++;
      chunk.sentTime = Date.now() / 1_000;
      void sctp.transport.send(dataPacket(sctp, chunk));
      if (sctp.timer3Handle === undefined) sctp.timer3Start();
    }
    onTransmitted();
    return DONE;
  };
}

/**
 * Processes a packet that is a SACK without gaps or duplicates. Returns false for any other packet, including one that
 * belongs to another association or has a wrong checksum.
 */
export function receiveSack(sctp: SctpInternals, packet: Buffer): boolean {
  if (packet[12] !== SACK || packet.length !== HEADER + SACK_HEADER || packet.readUInt32BE(24) !== 0) return false;
  if (!isForUs(sctp, packet)) return false;
  const [cumulativeTsn, advertisedRwnd] = [packet.readUInt32BE(16), packet.readUInt32BE(20)];
  sctp.receiveSackChunk({ cumulativeTsn, advertisedRwnd, gaps: [], duplicates: [] }).catch(() => undefined);
  return true;
}

/** Processes a packet with one DATA chunk. Returns false for any other packet, like `receiveSack`. */
export function receiveData(sctp: SctpInternals, packet: Buffer): boolean {
  if (packet[12] !== DATA) return false;
  const length = packet.readUInt16BE(14);
  if (packet.length !== HEADER + padded(length) || !isForUs(sctp, packet)) return false;
  sctp.receiveDataChunk({
    type: DATA,
    flags: packet[13]!,
    tsn: packet.readUInt32BE(16),
    streamId: packet.readUInt16BE(20),
    streamSeqNum: packet.readUInt16BE(22),
    protocol: packet.readUInt32BE(24),
    userData: packet.subarray(HEADER + DATA_HEADER, HEADER + length),
  });
  // Immediately: werift never delays the acknowledgement of DATA.
  sctp.scheduleSack().catch(() => undefined);
  return true;
}

function isForUs(sctp: SctpInternals, packet: Buffer): boolean {
  if (packet.readUInt32BE(4) !== sctp.localVerificationTag) return false;
  const checksum = packet.readUInt32LE(8);
  packet.writeUInt32LE(0, 8);
  const isIntact = crc32c(packet) === checksum;
  packet.writeUInt32LE(checksum, 8);
  return isIntact;
}

// Shared by all packets: each is encrypted, and so copied, before the next is written.
const scratch = Buffer.alloc(HEADER + DATA_HEADER + FRAGMENT_BYTES);

/**
 * Returns a packet with one DATA chunk (RFC 9260 section 3.3.1), behind the SACK that is due if that is short and fits
 * (section 6.10). It is valid until the next call.
 */
function dataPacket(sctp: SctpInternals, { flags, tsn, streamId, streamSeqNum, protocol, userData }: Chunk): Buffer {
  const length = DATA_HEADER + userData.length;
  const { sackNeeded, sackMisOrdered, sackDuplicates } = sctp;
  const isSackShort = sackNeeded && sackMisOrdered.size === 0 && sackDuplicates.length === 0;
  const at = isSackShort && HEADER + SACK_HEADER + length <= scratch.length ? HEADER + SACK_HEADER : HEADER;
  const packet = beginPacket(sctp, at + padded(length));
  if (at > HEADER) {
    writeSack(sctp, packet, { gaps: 0, duplicates: 0 });
    acknowledged(sctp);
  }
  packet.writeUInt32BE(chunkHead(DATA, flags, length), at);
  packet.writeUInt32BE(tsn, at + 4);
  packet.writeUInt16BE(streamId, at + 8);
  packet.writeUInt16BE(streamSeqNum, at + 10);
  packet.writeUInt32BE(protocol, at + 12);
  userData.copy(packet, at + DATA_HEADER);
  packet.fill(0, at + length);
  return withChecksum(packet);
}

/** Returns a packet with a SACK. It is valid until the next call. */
function sackPacket(sctp: SctpInternals): Buffer {
  const duplicates = sctp.sackDuplicates;
  const gaps = gapsOf(sctp, MAX_REPORTS - duplicates.length);
  const packet = beginPacket(sctp, HEADER + SACK_HEADER + 4 * (gaps.length + duplicates.length));
  writeSack(sctp, packet, { gaps: gaps.length, duplicates: duplicates.length });
  let at = HEADER + SACK_HEADER;
  for (const [from, to] of gaps) {
    packet.writeUInt16BE(from, at);
    packet.writeUInt16BE(to, at + 2);
    at += 4;
  }
  for (const tsn of duplicates) at = packet.writeUInt32BE(tsn, at);
  return withChecksum(packet);
}

/** Writes a SACK (RFC 9260 section 3.3.4) without its reports as the first chunk of a packet. */
function writeSack(
  { lastReceivedTsn, advertisedRwnd }: SctpInternals,
  packet: Buffer,
  { gaps, duplicates }: { gaps: number; duplicates: number },
): void {
  packet.writeUInt32BE(chunkHead(SACK, 0, SACK_HEADER + 4 * (gaps + duplicates)), 12);
  packet.writeUInt32BE(lastReceivedTsn >>> 0, 16);
  packet.writeUInt32BE(Math.max(0, advertisedRwnd), 20);
  packet.writeUInt16BE(gaps, 24);
  packet.writeUInt16BE(duplicates, 26);
}

/** Returns the first ranges received ahead of a gap, as offsets from the cumulative TSN. */
function gapsOf({ sackMisOrdered, lastReceivedTsn }: SctpInternals, most: number): [from: number, to: number][] {
  const gaps: [from: number, to: number][] = [];
  if (sackMisOrdered.size === 0) return gaps;
  for (const ahead of Uint32Array.from(sackMisOrdered, (tsn) => tsn - lastReceivedTsn).toSorted()) {
    const last = gaps.at(-1);
    if (ahead > 0xffff) break;
    if (last !== undefined && last[1] + 1 === ahead) last[1] = ahead;
    else if (gaps.length < most) gaps.push([ahead, ahead]);
    else break;
  }
  return gaps;
}

/** Returns a packet of this many bytes with its common header (RFC 9260 section 3.1). */
function beginPacket(sctp: SctpInternals, bytes: number): Buffer {
  const packet = scratch.subarray(0, bytes);
  packet.writeUInt16BE(sctp.localPort, 0);
  packet.writeUInt16BE(sctp.remotePort ?? 0, 2);
  packet.writeUInt32BE(sctp.remoteVerificationTag, 4);
  packet.writeUInt32LE(0, 8);
  return packet;
}

/** Returns the first word of a chunk. `length`: in bytes, with this word and without padding. */
function chunkHead(type: number, flags: number, length: number): number {
  return ((type << 24) | (flags << 16) | length) >>> 0;
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

function withChecksum(packet: Buffer): Buffer {
  packet.writeUInt32LE(crc32c(packet), 8);
  return packet;
}
