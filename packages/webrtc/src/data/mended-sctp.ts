import type { SCTP } from 'werift-sctp';

/** Flags of a DATA chunk. */
export const LAST_FRAGMENT = 0x01;
export const FIRST_FRAGMENT = 0x02;
const UNORDERED = 0x04;
/** Duplicates that one SACK reports. */
const MAX_DUPLICATES = 16;
/** Messages received ahead of a missing one. */
const MAX_AHEAD = 1_024;

/** One DATA chunk that was received. */
export interface DataChunk {
  type: number;
  flags: number;
  tsn: number;
  streamId: number;
  streamSeqNum: number;
  protocol: number;
  userData: Buffer;
}

/** One DATA chunk that is, or will be, in flight. */
export interface Chunk extends DataChunk {
  /** Bytes that count in the windows. */
  bookSize: number;
  /** Time as of `Date.now`, in seconds. */
  expiry: number | undefined;
  maxRetransmits: number | undefined;
  abandoned: boolean;
  acked: boolean;
  retransmit: boolean;
  /** SACKs that report a later chunk but not this one. */
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

/** What has arrived on one stream and is not delivered yet. */
interface InboundStream {
  /** In the order of their numbers. */
  reassembly: DataChunk[];
  /** Number of the next ordered message. */
  streamSequenceNumber: number;
  popMessages(): Iterable<[stream: number, protocol: number, message: Buffer]>;
}

/** A request to reset streams, or an answer, of a RECONFIG (RFC 6525 section 4). */
interface ReconfigParameter {
  readonly type: number;
  /** Only in a request. */
  readonly requestSequence?: number;
  readonly lastTsn?: number;
  readonly streams?: readonly number[];
  /** Only in an answer. */
  readonly responseSequence?: number;
  readonly result?: number;
}

interface ForwardTsn {
  cumulativeTsn: number;
  streams: [stream: number, sequence: number][];
}

/** State of an association that has ended, as a number of werift's. */
const CLOSED = 1;

/** What we use of werift's association beyond its interface. */
export interface SctpInternals {
  readonly state: string;
  readonly isStopped: boolean;
  setState(state: number): void;
  /** Bytes sent and not acknowledged. */
  flightSize: number;
  /** Congestion window, and what the peer can take now; in bytes. */
  readonly cwnd: number;
  readonly peerRwnd: number;
  /** True while packets are being sent. */
  readonly transmitting: boolean;
  /** Number of the chunk that ends fast recovery, during it. */
  readonly fastRecoveryExit: number | undefined;
  /** The timer for retransmissions, while it runs. */
  readonly timer3Handle: unknown;
  timer3Start(): void;
  readonly transport: { send(packet: Buffer): Promise<void> };
  readonly localPort: number;
  readonly remotePort: number | undefined;
  readonly localVerificationTag: number;
  readonly remoteVerificationTag: number;
  /** Number of the next chunk. */
  localTsn: number;
  /** Next number of each ordered stream. */
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
  /** An acknowledgement is due, at once or with the next packet. */
  sackNeeded: boolean;
  sackImmediate: boolean;
  /** Packets since the last acknowledgement. */
  sackPacketCount: number;
  handleData(packet: Buffer): Promise<void>;
  scheduleSack(): Promise<void>;
  sendChunk(chunk: { readonly type: number }): Promise<void>;
  transmit(): Promise<void>;
  receiveDataChunk(chunk: DataChunk): void;
  /** Number of the client's last request. */
  reconfigResponseSeq: number;
  receiveReconfigParam(parameter: ReconfigParameter): Promise<void>;
  sendReconfigParam(parameter: { readonly type: number; readonly bytes: Buffer }): Promise<void>;
  receiveSackChunk(chunk: SackChunk): Promise<void>;
  receiveForwardTsnChunk(chunk: ForwardTsn): void;
  /** Hands a message over. */
  receive(stream: number, protocol: number, message: Buffer): void;
  sendSack(): Promise<void>;
  markReceived(tsn: number): boolean;
  maybeAbandon(chunk: Chunk): boolean;
  updateAdvancedPeerAckPoint(): void;
  flightSizeIncrease(chunk: Chunk): void;
  flightSizeDecrease(chunk: Chunk): void;
  /** Sends again what is not acknowledged: the timer for retransmissions has run out. */
  timer3Expired(): void;
}

/**
 * Replaces the methods of one association of werift-sctp 0.0.11 that are wrong, and returns its internals. Each has a test in
 * `mended-sctp.test.ts` which fails without it; the faults are described in `docs/decisions/17-data-channels.md`.
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

/** Sorts and copies nothing. werift compares the numbers as text, so that it never gets past 10^9 when packets are reordered. */
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

/** Acknowledges what arrived early and has nothing missing before it any more. */
function acknowledgeEarly(internals: SctpInternals): void {
  for (let next = following(internals.lastReceivedTsn); internals.sackMisOrdered.delete(next); next = following(next)) {
    internals.lastReceivedTsn = next;
  }
}

/** Drops what is too far ahead: the client repeats it, and a SACK that names it all must fit into a packet. */
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
 * Takes out all messages that are complete and whose turn it is. werift stops behind a message when the next one was not sent right
 * after it, but one of another stream, and passes over an unordered message behind the beginning of another one.
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

/** Returns how many chunks the message that begins here consists of; 0 when it is not complete. */
function chunksOfMessage(chunks: readonly DataChunk[], first: number): number {
  if ((chunks[first]!.flags & FIRST_FRAGMENT) === 0) return 0;
  for (let at = first; at < chunks.length; at++) {
    const { flags, tsn } = chunks[at]!;
    const isNext = tsn === (chunks[first]!.tsn + at - first) >>> 0;
    // Two beginnings in a row: looking further from each of them would cost the square of their number.
    if (!isNext || (at > first && (flags & FIRST_FRAGMENT) !== 0)) return 0;
    if ((flags & LAST_FRAGMENT) !== 0) return at - first + 1;
  }
  return 0;
}

/**
 * Goes on behind messages that the client has given up (RFC 3758 section 3.6). werift also throws away the pieces of later messages
 * that are still coming, so that their channel stops, and leaves messages behind the pieces of one that was given up undelivered.
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

/** Forgets the chunks up to this number whose messages are not complete. Returns their bytes. */
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
 * Abandons the message of this chunk when its limit is reached (RFC 3758 section 3.5). werift abandons the oldest message in
 * flight instead, which may be a reliable one, never gives up with zero retransmissions, and leaves the rest of a message to be sent.
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
    // The caller takes the chunk itself out of the flight.
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
  // Counts as acknowledged, and never as missing again.
  chunk.acked = true;
  chunk.misses = Number.NEGATIVE_INFINITY;
}

/**
 * Counts a chunk that is sent as one that is not acknowledged. After a timeout werift also sends what the client has acknowledged out of
 * order, and never takes that out of the flight: once it fills the window nothing is sent any more, and no timer runs.
 */
function countAgain(internals: SctpInternals, chunk: Chunk): void {
  chunk.acked = false;
  internals.flightSize += chunk.bookSize;
}

/** Sends FORWARD TSN until the client has it (RFC 3758 section 3.5, A5): werift sends it once, and a lost one stops the channel. */
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
 * Keeps an association that has ended from beginning anew: with a COOKIE ECHO behind the chunk that ended it werift does so, and runs
 * its timer for ever, which holds everything of the client.
 */
function stayClosed(internals: SctpInternals): void {
  const set = internals.setState.bind(internals);
  internals.setState = (state) => {
    if (!internals.isStopped || state === CLOSED) set(state);
  };
}

/** Returns the number after this one (RFC 1982). */
export function following(tsn: number): number {
  return (tsn + 1) >>> 0;
}

/** Serial number arithmetic (RFC 1982). */
export function isAfter(a: number, b: number): boolean {
  return a !== b && (a - b) >>> 0 < 0x8000_0000;
}
