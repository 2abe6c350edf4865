import { afterEach, describe, expect, test } from '@jest/globals';
import { SCTP } from 'werift-sctp';
import { mendSctp } from './mended-sctp.js';
import { StreamResets } from './stream-resets.js';

const ESTABLISHED = 4;
const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** An established association, with the packets it sends, the messages it delivers and the resets it reports. */
function association() {
  const raw = SCTP.server({ send: () => Promise.resolve(), close: () => undefined }, 5_000);
  const sctp = mendSctp(raw, 256 * 1024);
  Object.assign(sctp, { lastReceivedTsn: 0, associationState: ESTABLISHED });
  ends.push(() => raw.stop());
  const sent: string[] = [];
  sctp.sendReconfigParam = ({ type, bytes }) => Promise.resolve(void sent.push(`${type} ${bytes.toString('hex')}`));
  const messages: string[] = [];
  raw.onReceive.subscribe((_stream, _protocol, data) => messages.push(data.toString()));
  const [resets, done]: [number[], number[]] = [[], []];
  const streams = new StreamResets(raw, sctp, {
    onReset: (reset) => resets.push(...reset),
    onResetDone: (reset) => done.push(...reset),
  });
  const receive = (tsn: number, streamSeqNum: number): void => {
    const userData = Buffer.from(`${tsn}`);
    sctp.receiveDataChunk({ type: 0, flags: 3, tsn, streamId: 1, streamSeqNum, protocol: 51, userData });
  };
  return { raw, sctp, streams, sent, messages, resets, done, receive };
}

describe('resets by the client', () => {
  const request = { type: 13, requestSequence: 1, streams: [1] };

  test("delays a reset that overtook messages of its stream, and the stream's next channel works", async () => {
    const { sctp, messages, resets, receive } = association();
    const reset = (lastTsn: number) => sctp.receiveReconfigParam({ ...request, lastTsn });

    receive(1, 0);
    receive(3, 2);
    await reset(3);
    expect(resets).toEqual([]);
    receive(2, 1);
    // The client repeats it because it was not answered.
    await reset(3);
    expect(resets).toEqual([1]);
    receive(4, 0);
    expect(messages).toEqual(['1', '2', '3', '4']);
  });

  test("answers a repeated reset again and keeps the stream's next channel", async () => {
    const { sctp, sent, messages, resets, receive } = association();
    receive(1, 0);
    await sctp.receiveReconfigParam({ ...request, lastTsn: 1 });
    receive(2, 0);
    await sctp.receiveReconfigParam({ ...request, lastTsn: 1 });
    receive(3, 1);
    expect(messages).toEqual(['1', '2', '3']);
    expect(resets).toEqual([1]);
    expect(sent).toEqual(['16 0000000100000001', '16 0000000100000001']);
  });

  test('ignores a reset older than the last one', async () => {
    const { sctp, sent, resets } = association();
    for (const requestSequence of [1, 2, 1])
      await sctp.receiveReconfigParam({ ...request, requestSequence, lastTsn: 0 });
    expect(sent.length).toBe(2);
    expect(resets).toEqual([1, 1]);
  });
});

describe('resets by us', () => {
  test('requests a reset once, and completes it when the client responds', async () => {
    const { raw, sctp, streams, sent, resets, done } = association();
    for (const stream of [4, 4, 6]) streams.reset(stream);
    expect(sent.length).toBe(1);
    expect(raw.reconfigQueue).toEqual([6]);
    const { requestSequence } = raw.reconfigRequest!;
    await sctp.receiveReconfigParam({ type: 16, responseSequence: requestSequence, result: 1 });
    expect(sent.length).toBe(2);
    expect(raw.reconfigQueue).toEqual([]);
    expect(resets).toEqual([]);
    expect(done).toEqual([4]);
  });

  test('restarts numbering when the client reuses a stream under reset, and ignores a late response', async () => {
    const { raw, sctp, streams, sent, done } = association();
    sctp.outboundStreamSeq = { 4: 7, 6: 2 };
    streams.reset(4);
    streams.assumeDone(6);
    expect(done).toEqual([]);
    expect(sctp.outboundStreamSeq).toEqual({ 4: 7, 6: 2 });
    const { requestSequence } = raw.reconfigRequest!;
    streams.assumeDone(4);
    expect(done).toEqual([4]);
    expect(sctp.outboundStreamSeq).toEqual({ 6: 2 });
    expect(raw.reconfigRequest).toBeUndefined();
    sctp.outboundStreamSeq[4] = 1;
    await sctp.receiveReconfigParam({ type: 16, responseSequence: requestSequence, result: 1 });
    expect(done).toEqual([4]);
    expect(sctp.outboundStreamSeq).toEqual({ 4: 1, 6: 2 });
    expect(sent.length).toBe(1);
  });
});
