import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { SCTP } from 'werift-sctp';
import { crc32c } from 'werift-sctp/lib/common/src/crc.js';
import { mendSctp, type SctpInternals } from './mended-sctp.js';
import { sendMessage } from './sctp-fast-path.js';

const LAST = 1;
const FIRST = 2;
const WHOLE = FIRST | LAST;
type Chunk = SctpInternals['sentQueue'][number];

/** An established association whose packets go nowhere. */
function association(): SctpInternals {
  const sctp = SCTP.server({ send: () => Promise.resolve(), close: () => undefined }, 5_000);
  return mendSctp(sctp, 256 * 1024);
}

function sent(tsn: number, over: Partial<Chunk> = {}): Chunk {
  return {
    type: 0,
    tsn,
    flags: WHOLE,
    streamId: 1,
    streamSeqNum: tsn,
    bookSize: 10,
    sentCount: 1,
    misses: 0,
    acked: false,
    abandoned: false,
    retransmit: false,
    ...over,
  } as Chunk;
}

describe('abandoning a message', () => {
  test('abandons the message whose limit is reached, not the oldest one', () => {
    const sctp = association();
    sctp.sentQueue = [sent(1), sent(2, { maxRetransmits: 1, sentCount: 2 }), sent(3)];
    expect(sctp.maybeAbandon(sctp.sentQueue[1]!)).toBe(true);
    expect(sctp.sentQueue.map(({ abandoned }) => abandoned)).toEqual([false, true, false]);
  });

  test('abandons a message without retransmissions after its first loss, and never a reliable one', () => {
    const sctp = association();
    sctp.sentQueue = [sent(1, { maxRetransmits: 0 }), sent(2, { sentCount: 100 }), sent(3, { expiry: 1 })];
    expect(sctp.sentQueue.map((chunk) => sctp.maybeAbandon(chunk))).toEqual([true, false, true]);
  });

  test('abandons all fragments of a message, including those not sent yet', () => {
    const sctp = association();
    const lossy = { maxRetransmits: 0 };
    sctp.sentQueue = [sent(1, { ...lossy, flags: FIRST }), sent(2, { ...lossy, flags: 0 })];
    sctp.outboundQueue = [sent(3, { flags: 0 }), sent(4, { flags: LAST }), sent(5)];
    expect(sctp.maybeAbandon(sctp.sentQueue[1]!)).toBe(true);
    expect(sctp.sentQueue.map(({ tsn, abandoned }) => [tsn, abandoned])).toEqual(
      [1, 2, 3, 4].map((tsn) => [tsn, true]),
    );
    expect(sctp.outboundQueue.map(({ tsn }) => tsn)).toEqual([5]);
  });
});

test('repeats FORWARD TSN with all its streams until it is acknowledged', () => {
  const sctp = association();
  sctp.lastSackedTsn = 9;
  sctp.advancedPeerAckTsn = 9;
  sctp.sentQueue = [sent(10, { abandoned: true, streamId: 3 })];
  sctp.updateAdvancedPeerAckPoint();
  sctp.forwardTsnChunk = undefined;
  sctp.sentQueue = [sent(11, { abandoned: true, streamId: 5 })];
  sctp.updateAdvancedPeerAckPoint();
  sctp.forwardTsnChunk = undefined;
  sctp.updateAdvancedPeerAckPoint();
  expect(sctp.forwardTsnChunk).toMatchObject({
    cumulativeTsn: 11,
    streams: [
      [3, 10],
      [5, 11],
    ],
  });
  sctp.forwardTsnChunk = undefined;
  sctp.lastSackedTsn = 11;
  sctp.updateAdvancedPeerAckPoint();
  expect(sctp.forwardTsnChunk).toBeUndefined();
});

test('frees window space when a chunk retransmitted after a timeout is acknowledged', async () => {
  const sctp = association();
  const packets: Chunk[] = [];
  sctp.sendChunk = (chunk) => Promise.resolve(void packets.push(chunk as Chunk));
  Object.assign(sctp, { lastSackedTsn: 0, localTsn: 1, cwnd: 3_600, ssthresh: 1e6 });
  for (const bytes of [10, 100, 1_200]) sendMessage(sctp, 1, 53, Buffer.alloc(bytes), { ordered: true });
  await setImmediate();
  // Lose the first chunk: two SACKs that miss it are too few for a fast retransmission.
  for (const until of [2, 3]) {
    await sctp.receiveSackChunk({ cumulativeTsn: 0, advertisedRwnd: 1e6, gaps: [[2, until]], duplicates: [] });
  }
  sctp.timer3Expired();
  await setImmediate();
  await sctp.receiveSackChunk({ cumulativeTsn: 3, advertisedRwnd: 1e6, gaps: [], duplicates: [] });
  expect(sctp.flightSize).toBe(0);
  sendMessage(sctp, 1, 53, Buffer.alloc(10), { ordered: true });
  await setImmediate();
  expect(packets.at(-1)?.tsn).toBe(4);
  await (sctp as unknown as SCTP).stop();
});

describe('received TSNs', () => {
  test.each([999_999_997, 0xffff_fffd, 7])('acknowledges TSNs received in any order, starting after %i', (last) => {
    fc.assert(
      fc.property(fc.shuffledSubarray([1, 2, 3, 4, 5, 6, 7, 8], { minLength: 8 }), (order) => {
        const sctp = association();
        sctp.lastReceivedTsn = last;
        for (const ahead of order) expect(sctp.markReceived((last + ahead) >>> 0)).toBe(false);
        expect(sctp.markReceived((last + 3) >>> 0)).toBe(true);
        expect(sctp.lastReceivedTsn).toBe((last + 8) >>> 0);
        expect(sctp.sackMisOrdered.size).toBe(0);
      }),
      { numRuns: fuzzRuns(50) },
    );
  });

  test('bounds the TSNs kept far ahead of a missing one', () => {
    const sctp = association();
    sctp.lastReceivedTsn = 0;
    for (let tsn = 2; tsn < 3_000; tsn++) {
      sctp.receiveDataChunk({ ...sent(tsn), userData: Buffer.alloc(1), protocol: 51 } as Chunk);
    }
    expect(sctp.sackMisOrdered.size).toBe(1_024);
    for (let n = 0; n < 100; n++) sctp.markReceived(5);
    expect(sctp.sackDuplicates.length).toBe(16);
  });
});

describe('messages behind a lost one', () => {
  /** Receives chunks, given by their TSNs, and returns the delivered messages. */
  function delivered(chunks: [tsn: number, over?: Partial<Chunk>][]): string[] {
    const sctp = association();
    sctp.lastReceivedTsn = 0;
    const messages: string[] = [];
    (sctp as unknown as SCTP).onReceive.subscribe((_stream, _protocol, data) => messages.push(data.toString()));
    for (const [tsn, over] of chunks) {
      const userData = Buffer.from(String(tsn));
      sctp.receiveDataChunk({ ...sent(tsn), protocol: 51, userData, ...over } as Chunk);
    }
    return messages;
  }

  test('delivers every message behind a gap, even with messages of other streams in between', () => {
    const of = (streamId: number, streamSeqNum: number) => ({ streamId, streamSeqNum });
    expect(
      delivered([
        [2, of(3, 0)],
        [3, of(1, 1)],
        [4, of(3, 1)],
        [5, of(1, 2)],
        [1, of(1, 0)],
      ]),
    ).toEqual(['2', '4', '1', '3', '5']);
  });

  test('delivers unordered messages without waiting for the rest of another one', () => {
    const unordered = (flags: number) => ({ flags: flags | 4, streamSeqNum: 0 });
    const chunks: [number, Partial<Chunk>][] = [
      [1, unordered(FIRST)],
      [3, unordered(WHOLE)],
      [5, unordered(WHOLE)],
    ];
    expect(delivered(chunks)).toEqual(['3', '5']);
    expect(delivered([...chunks, [2, unordered(LAST)]])).toEqual(['3', '5', '12']);
    expect(
      delivered([
        [1, unordered(FIRST)],
        [2, unordered(FIRST)],
        [3, unordered(LAST)],
      ]),
    ).toEqual(['23']);
  });
});

describe('messages abandoned by the client', () => {
  /** Returns an association that has received these chunks, and the messages that it delivers. */
  function received(chunks: [tsn: number, over: Partial<Chunk>][]) {
    const sctp = association();
    sctp.lastReceivedTsn = 0;
    const messages: string[] = [];
    (sctp as unknown as SCTP).onReceive.subscribe((_stream, _protocol, data) => messages.push(data.toString()));
    const receive = (tsn: number, over: Partial<Chunk>): void =>
      sctp.receiveDataChunk({ ...sent(tsn), protocol: 51, userData: Buffer.from(String(tsn)), ...over } as Chunk);
    for (const [tsn, over] of chunks) receive(tsn, over);
    return { sctp, messages, receive };
  }

  test('keeps the fragments of a later message that is still arriving', () => {
    const { sctp, messages, receive } = received([
      [2, { flags: FIRST, streamSeqNum: 0 }],
      [3, { flags: 0, streamSeqNum: 0 }],
    ]);
    sctp.receiveForwardTsnChunk({ cumulativeTsn: 1, streams: [[3, 0]] });
    expect(sctp.lastReceivedTsn).toBe(3);
    receive(4, { flags: LAST, streamSeqNum: 0 });
    receive(5, { streamSeqNum: 1 });
    expect(messages).toEqual(['234', '5']);
    expect(sctp.advertisedRwnd).toBe(256 * 1024);
  });

  test.each([
    ['ordered', 0, [[1, 0]]],
    ['unordered', 4, []],
  ] as const)('leaves no fragments behind and delivers the %s messages after them at once', (_order, flag, streams) => {
    const { sctp, messages } = received([
      [1, { flags: FIRST | flag, streamSeqNum: 0 }],
      [3, { flags: WHOLE | flag, streamSeqNum: 1 }],
      [4, { flags: WHOLE | flag, streamSeqNum: 2 }],
    ]);
    sctp.receiveForwardTsnChunk({ cumulativeTsn: 2, streams: streams.map(([stream, sequence]) => [stream, sequence]) });
    expect(messages).toEqual(['3', '4']);
    expect(sctp.inboundStreams[1]?.reassembly).toEqual([]);
    expect(sctp.advertisedRwnd).toBe(256 * 1024);
  });

  test('skips abandoned messages once, in whatever order the client reports them', () => {
    const { sctp, messages, receive } = received([[2, { streamSeqNum: 1 }]]);
    sctp.receiveForwardTsnChunk({ cumulativeTsn: 1, streams: [[1, 0]] });
    receive(4, { streamSeqNum: 3 });
    // Repeats the first stream, whose acknowledgement is still in flight.
    sctp.receiveForwardTsnChunk({
      cumulativeTsn: 3,
      streams: [
        [1, 0],
        [1, 2],
        [1, 0],
      ],
    });
    sctp.receiveForwardTsnChunk({ cumulativeTsn: 1, streams: [[1, 0]] });
    receive(5, { streamSeqNum: 4 });
    expect(messages).toEqual(['2', '4', '5']);
    expect(sctp.lastReceivedTsn).toBe(5);
  });

  test.each([999_999_996, 0xffff_fffc])('skips an abandoned message past TSN %i', (last) => {
    const { sctp } = received([]);
    sctp.lastReceivedTsn = last;
    for (const ahead of [5, 3, 2, 4]) sctp.markReceived((last + ahead) >>> 0);
    sctp.receiveForwardTsnChunk({ cumulativeTsn: (last + 1) >>> 0, streams: [] });
    expect(sctp.lastReceivedTsn).toBe((last + 5) >>> 0);
    expect(sctp.sackMisOrdered.size).toBe(0);
  });
});

test('does not restart an association when a COOKIE ECHO follows the chunk that ended it', async () => {
  const packets: Buffer[] = [];
  const transport = { send: (packet: Buffer) => Promise.resolve(void packets.push(packet)), close: () => undefined };
  const [server, client] = [SCTP.server(transport, 5_000), SCTP.client({ ...transport }, 5_000)];
  const internals = mendSctp(server, 256 * 1024);
  await server.start(5_000);
  await client.start(5_000);
  for (const end of [internals, client as unknown as SctpInternals]) {
    await end.handleData(packets.shift()!);
  }
  const [echo] = packets as [Buffer];
  // ABORT (6), followed by the COOKIE ECHO (10) that opens the association.
  const packet = Buffer.concat([echo.subarray(0, 12), Buffer.of(6, 0, 0, 4), echo.subarray(12)]);
  packet.writeUInt32LE(0, 8);
  packet.writeUInt32LE(crc32c(packet), 8);
  await internals.handleData(packet);
  await client.stop();
  expect(echo[12]).toBe(10);
  expect(internals.state).toBe('closed');
  expect(internals.isStopped).toBe(true);
  expect((server as unknown as { timerHeartbeatHandle: unknown }).timerHeartbeatHandle).toBeUndefined();
});
