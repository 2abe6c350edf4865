import type { SCTP } from 'werift-sctp';

/** Flags of a DATA chunk. */
export const LAST_FRAGMENT = 0x01;
export const FIRST_FRAGMENT = 0x02;
const UNORDERED = 0x04;
/** Bound on the duplicates that one SACK reports. */
const MAX_DUPLICATES = 16;
/** Bound on the chunks received ahead of a missing one. */
const MAX_AHEAD = 1_024;

/** A received DATA chunk. */
export interface DataChunk {
  type: number;
  flags: number;
  tsn: number;
  streamId: number;
  streamSeqNum: number;
  protocol: number;
  userData: Buffer;
}

/** A DATA chunk that is queued or in flight. */
export interface Chunk extends DataChunk {
  /** Bytes that count against the windows. */
  bookSize: number;
  /** Deadline in seconds on the `Date.now` clock. */
  expiry: number | undefined;
  maxRetransmits: number | undefined;
  abandoned: boolean;
  acked: boolean;
  retransmit: boolean;
  /** Number of SACKs that reported a later chunk but not this one. */
  misses: number;
  sentCount: number;
  sentTime: number | undefined;
}

interface SackChunk {
  cumulativeTsn: number;
  advertisedRwnd: number;
  gaps: [from: number, to: number][];
  duplicates: number[];
}

/** Chunks received on one stream and not yet delivered. */
interface InboundStream {
  /** Sorted by TSN. */
  reassembly: DataChunk[];
  /** Sequence number of the next ordered message. */
  streamSequenceNumber: number;
  popMessages(): Iterable<[stream: number, protocol: number, message: Buffer]>;
}

/** A request to reset streams, or a response, in a RECONFIG chunk (RFC 6525 section 4). */
interface ReconfigParameter {
  readonly type: number;
  /** Set in requests only. */
  readonly requestSequence?: number;
  readonly lastTsn?: number;
  readonly streams?: readonly number[];
  /** Set in responses only. */
  readonly responseSequence?: number;
  readonly result?: number;
}

interface ForwardTsn {
  cumulativeTsn: number;
  streams: [stream: number, sequence: number][];
}

/** werift's number for the state of an association that has ended. */
const CLOSED = 1;

/** The members of werift's association that we use beyond its public interface. */
export interface SctpInternals {
  readonly state: string;
  readonly isStopped: boolean;
  setState(state: number): void;
  /** Bytes sent but not acknowledged. */
  flightSize: number;
  /** Congestion window, and the peer's current receive window, in bytes. */
  readonly cwnd: number;
  readonly peerRwnd: number;
  /** True while packets are being sent. */
  readonly transmitting: boolean;
  /** TSN that ends fast recovery; undefined outside it. */
  readonly fastRecoveryExit: number | undefined;
  /** Retransmission timer, while it runs. */
  readonly timer3Handle: unknown;
  timer3Start(): void;
  readonly transport: { send(packet: Buffer): Promise<void> };
  readonly localPort: number;
  readonly remotePort: number | undefined;
  readonly localVerificationTag: number;
  readonly remoteVerificationTag: number;
  /** TSN of the next chunk. */
  localTsn: number;
  /** Next sequence number of each ordered stream. */
  outboundStreamSeq: Record<number, number | undefined>;
  advertisedRwnd: number;
  inboundStreams: Record<number, InboundStream | undefined>;
  getInboundStream(stream: number): InboundStream;
  lastReceivedTsn: number;
  sackDuplicates: number[];
  sackMisOrdered: Set<number>;
  sentQueue: Chunk[];
  outboundQueue: Chunk[];
  lastSackedTsn: number;
  advancedPeerAckTsn: number;
  forwardTsnChunk: ForwardTsn | undefined;
  /** True when an acknowledgement is due: immediately, or with the next packet. */
  sackNeeded: boolean;
  sackImmediate: boolean;
  /** Packets received since the last acknowledgement. */
  sackPacketCount: number;
  handleData(packet: Buffer): Promise<void>;
  scheduleSack(): Promise<void>;
  sendChunk(chunk: { readonly type: number }): Promise<void>;
  transmit(): Promise<void>;
  receiveDataChunk(chunk: DataChunk): void;
  /** Sequence number of the client's last request. */
  reconfigResponseSeq: number;
  receiveReconfigParam(parameter: ReconfigParameter): Promise<void>;
  sendReconfigParam(parameter: { readonly type: number; readonly bytes: Buffer }): Promise<void>;
  receiveSackChunk(chunk: SackChunk): Promise<void>;
  receiveForwardTsnChunk(chunk: ForwardTsn): void;
  /** Delivers a message. */
  receive(stream: number, protocol: number, message: Buffer): void;
  sendSack(): Promise<void>;
  markReceived(tsn: number): boolean;
  maybeAbandon(chunk: Chunk): boolean;
  updateAdvancedPeerAckPoint(): void;
  flightSizeIncrease(chunk: Chunk): void;
  flightSizeDecrease(chunk: Chunk): void;
  /** Called when the retransmission timer expires: retransmits unacknowledged chunks. */
  timer3Expired(): void;
}

/**
 * Replaces the faulty methods of one association of werift-sctp 0.0.11 and returns its internals. Each replacement has
 * a test in `mended-sctp.test.ts` that fails without it; `docs/reference/werift-sctp.md` describes the faults.
 */
export function mendSctp(sctp: SCTP, receiveWindow: number): SctpInternals {
  const internals = sctp as unknown as SctpInternals;
  internals.advertisedRwnd = receiveWindow;
  internals.markReceived = (tsn) => markReceived(internals, tsn);
  internals.maybeAbandon = (chunk) => abandonIfDue(internals, chunk);
  boundReceiving(internals);
  deliverAll(internals);
  internals.receiveForwardTsnChunk = (chunk) => skipGivenUp(internals, chunk);
  internals.flightSizeIncrease = (chunk) => countAgain(internals, chunk);
  repeatForwardTsn(internals);
  stayClosed(internals);
  return internals;
}

/** Sorts and copies nothing. werift compares TSNs as text, so under reordering it gets stuck at 10^9. */
function markReceived(internals: SctpInternals, tsn: number): boolean {
  const { sackMisOrdered, sackDuplicates } = internals;
  if (!isAfter(tsn, internals.lastReceivedTsn) || sackMisOrdered.has(tsn)) {
    if (sackDuplicates.length < MAX_DUPLICATES) sackDuplicates.push(tsn);
    return true;
  }
  sackMisOrdered.add(tsn);
  acknowledgeEarly(internals);
  return false;
}

/** Advances the cumulative TSN over chunks that arrived early and no longer follow a gap. */
function acknowledgeEarly(internals: SctpInternals): void {
  for (let next = following(internals.lastReceivedTsn); internals.sackMisOrdered.delete(next); next = following(next)) {
    internals.lastReceivedTsn = next;
  }
}

/** Drops chunks too far ahead: the client retransmits them, and a SACK that lists every gap must fit into a packet. */
function boundReceiving(internals: SctpInternals): void {
  const receive = internals.receiveDataChunk.bind(internals);
  internals.receiveDataChunk = (chunk) => {
    const isNext = chunk.tsn === following(internals.lastReceivedTsn);
    if (!isNext && internals.sackMisOrdered.size >= MAX_AHEAD) return;
    receive(chunk);
  };
}

function deliverAll(internals: SctpInternals): void {
  const get = internals.getInboundStream.bind(internals);
  internals.getInboundStream = (number) => {
    const known = internals.inboundStreams[number];
    if (known !== undefined) return known;
    const stream = get(number);
    stream.popMessages = () => popMessages(stream);
    return stream;
  };
}

/**
 * Removes and yields all complete messages whose turn has come. werift stops after a message if the next TSN belongs to
 * another stream, and skips an unordered message that follows the beginning of another message.
 */
function* popMessages(stream: InboundStream): Generator<[number, number, Buffer]> {
  const { reassembly } = stream;
  for (let at = 0; at < reassembly.length; ) {
    const { flags, streamId, streamSeqNum, protocol } = reassembly[at]!;
    const isOrdered = (flags & UNORDERED) === 0;
    const count = chunksOfMessage(reassembly, at);
    const behind = (stream.streamSequenceNumber - streamSeqNum) & 0xffff;
    if (isOrdered && (count === 0 || behind >= 0x8000)) return;
    if (count === 0) {
      at++;
      continue;
    }
    const message = Buffer.concat(reassembly.splice(at, count).map(({ userData }) => userData));
    if (isOrdered && behind === 0) stream.streamSequenceNumber = (streamSeqNum + 1) & 0xffff;
    yield [streamId, protocol, message];
  }
}

/** Returns the number of chunks in the message that begins here; 0 while the message is incomplete. */
function chunksOfMessage(chunks: readonly DataChunk[], first: number): number {
  if ((chunks[first]!.flags & FIRST_FRAGMENT) === 0) return 0;
  for (let at = first; at < chunks.length; at++) {
    const { flags, tsn } = chunks[at]!;
    const isNext = tsn === (chunks[first]!.tsn + at - first) >>> 0;
    // Stop at a second first fragment: scanning on from each one would take quadratic time.
    if (!isNext || (at > first && (flags & FIRST_FRAGMENT) !== 0)) return 0;
    if ((flags & LAST_FRAGMENT) !== 0) return at - first + 1;
  }
  return 0;
}

/**
 * Skips messages that the client has abandoned (RFC 3758 section 3.6). werift also discards fragments of later messages
 * that are still arriving, which stalls their channel, and never delivers complete messages behind the fragments of an
 * abandoned one.
 */
function skipGivenUp(internals: SctpInternals, { cumulativeTsn, streams }: ForwardTsn): void {
  internals.sackNeeded = true;
  internals.sackImmediate = true;
  if (!isAfter(cumulativeTsn, internals.lastReceivedTsn)) return;
  internals.lastReceivedTsn = cumulativeTsn;
  for (const tsn of internals.sackMisOrdered) {
    if (!isAfter(tsn, cumulativeTsn)) internals.sackMisOrdered.delete(tsn);
  }
  acknowledgeEarly(internals);
  for (const [number, sequence] of streams) {
    const stream = internals.getInboundStream(number);
    const next = (sequence + 1) & 0xffff;
    if (((next - stream.streamSequenceNumber) & 0xffff) < 0x8000) stream.streamSequenceNumber = next;
  }
  for (const number in internals.inboundStreams) {
    const stream = internals.inboundStreams[number]!;
    internals.advertisedRwnd += forgetPieces(stream, cumulativeTsn);
    for (const message of stream.popMessages()) {
      internals.advertisedRwnd += message[2].length;
      internals.receive(...message);
    }
  }
}

/** Removes the fragments of incomplete messages up to this TSN. Returns their size in bytes. */
function forgetPieces(stream: InboundStream, until: number): number {
  const { reassembly } = stream;
  const kept: DataChunk[] = [];
  let bytes = 0;
  for (let at = 0; at < reassembly.length; ) {
    const chunk = reassembly[at]!;
    const count = isAfter(chunk.tsn, until) ? 1 : chunksOfMessage(reassembly, at);
    if (count === 0) bytes += chunk.userData.length;
    for (const end = at + count; at < end; at++) kept.push(reassembly[at]!);
    if (count === 0) at++;
  }
  stream.reassembly = kept;
  return bytes;
}

/**
 * Abandons the message of this chunk when its limit is reached (RFC 3758 section 3.5). werift instead abandons the
 * oldest message in flight, which may be a reliable one; it never abandons one with zero retransmissions, and still
 * sends the rest of an abandoned message.
 */
function abandonIfDue(internals: SctpInternals, chunk: Chunk): boolean {
  if (chunk.abandoned) return true;
  const isSpent = chunk.maxRetransmits !== undefined && chunk.sentCount > chunk.maxRetransmits;
  const isLate = chunk.expiry !== undefined && chunk.expiry < Date.now() / 1_000;
  if (!isSpent && !isLate) return false;

  const { sentQueue, outboundQueue } = internals;
  const at = sentQueue.indexOf(chunk);
  let first = at;
  while (first > 0 && (sentQueue[first]!.flags & FIRST_FRAGMENT) === 0) first--;
  let last = at;
  while (last < sentQueue.length - 1 && (sentQueue[last]!.flags & LAST_FRAGMENT) === 0) last++;
  for (let index = first; index <= last; index++) {
    const each = sentQueue[index]!;
    // The caller removes this chunk from the flight size itself.
    if (each !== chunk && !each.acked && !each.retransmit) internals.flightSizeDecrease(each);
    giveUp(each);
  }
  while (last === sentQueue.length - 1 && (sentQueue[last]!.flags & LAST_FRAGMENT) === 0 && outboundQueue.length > 0) {
    const rest = outboundQueue.shift()!;
    giveUp(rest);
    sentQueue.push(rest);
    last++;
  }
  return true;
}

function giveUp(chunk: Chunk): void {
  chunk.abandoned = true;
  chunk.retransmit = false;
  // Counts as acknowledged, and is never reported missing again.
  chunk.acked = true;
  chunk.misses = Number.NEGATIVE_INFINITY;
}

/**
 * Counts a retransmitted chunk as unacknowledged. After a timeout werift also resends chunks that the client
 * acknowledged out of order and never subtracts them from the flight size: once they fill the window, sending stops and
 * no timer runs.
 */
function countAgain(internals: SctpInternals, chunk: Chunk): void {
  chunk.acked = false;
  internals.flightSize += chunk.bookSize;
}

/**
 * Repeats FORWARD TSN until acknowledged (RFC 3758 section 3.5, A5): werift sends one, and losing it stalls the
 * channel.
 */
function repeatForwardTsn(internals: SctpInternals): void {
  const update = internals.updateAdvancedPeerAckPoint.bind(internals);
  let last: ForwardTsn | undefined;
  internals.updateAdvancedPeerAckPoint = () => {
    update();
    if (!isAfter(internals.advancedPeerAckTsn, internals.lastSackedTsn)) {
      last = undefined;
      return;
    }
    const fresh = internals.forwardTsnChunk;
    if (fresh !== undefined && fresh !== last) {
      fresh.streams = [...new Map([...(last?.streams ?? []), ...fresh.streams])];
      last = fresh;
    }
    internals.forwardTsnChunk = last;
  };
}

/**
 * Prevents an ended association from restarting: werift restarts it on a COOKIE ECHO that follows the closing chunk in
 * the same packet, and then runs its timer forever, which keeps the client's whole state in memory.
 */
function stayClosed(internals: SctpInternals): void {
  const set = internals.setState.bind(internals);
  internals.setState = (state) => {
    if (!internals.isStopped || state === CLOSED) set(state);
  };
}

/** Returns the serial number after this one (RFC 1982). */
export function following(tsn: number): number {
  return (tsn + 1) >>> 0;
}

/** Returns true if `a` comes after `b` in serial number arithmetic (RFC 1982). */
export function isAfter(a: number, b: number): boolean {
  return a !== b && (a - b) >>> 0 < 0x8000_0000;
}
