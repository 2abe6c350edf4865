import { afterEach, describe, expect, test } from '@jest/globals';
import { SCTP } from 'werift-sctp';
import { mendSctp } from './mended-sctp.js';
import { StreamResets } from './stream-resets.js';

const ESTABLISHED = 4;
const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** An association that is up: what it sends and delivers, and the resets that it reports. */
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

describe('a reset by the client', () => {
  const request = { type: 13, requestSequence: 1, streams: [1] };

  test('that overtook messages of its stream waits for them, and the next channel on the stream works', async () => {
    const { sctp, messages, resets, receive } = association();
    const reset = (lastTsn: number) => sctp.receiveReconfigParam({ ...request, lastTsn });

    receive(1, 0);
    receive(3, 2);
    await reset(3);
    expect(resets).toEqual([]);
    receive(2, 1);
    // Repeated by the client, since it was not answered.
    await reset(3);
    expect(resets).toEqual([1]);
    receive(4, 0);
    expect(messages).toEqual(['1', '2', '3', '4']);
  });

  test('that the client repeats is answered again, and the next channel on the stream stays', async () => {
    const { sctp, sent, messages, resets, receive } = association();
    receive(1, 0);
    await sctp.receiveReconfigParam({ ...request, lastTsn: 1 });
    receive(2, 0);
    await sctp.receiveReconfigParam({ ...request, lastTsn: 1 });
    receive(3, 1);
    expect([messages, resets]).toEqual([['1', '2', '3'], [1]]);
    expect(sent).toEqual(['16 0000000100000001', '16 0000000100000001']);
  });

  test('from before the last one is ignored', async () => {
    const { sctp, sent, resets } = association();
    for (const requestSequence of [1, 2, 1])
      await sctp.receiveReconfigParam({ ...request, requestSequence, lastTsn: 0 });
    expect([sent.length, resets]).toEqual([2, [1, 1]]);
  });
});

describe('a reset by us', () => {
  test('is requested once, and done when the client has answered', async () => {
    const { raw, sctp, streams, sent, resets, done } = association();
    for (const stream of [4, 4, 6]) streams.reset(stream);
    expect([sent.length, raw.reconfigQueue]).toEqual([1, [6]]);
    const { requestSequence } = raw.reconfigRequest!;
    await sctp.receiveReconfigParam({ type: 16, responseSequence: requestSequence, result: 1 });
    expect([sent.length, raw.reconfigQueue, resets, done]).toEqual([2, [], [], [4]]);
  });

  test('is done when the client uses the stream again, whose messages begin anew, and a late answer changes nothing', async () => {
    const { raw, sctp, streams, sent, done } = association();
    sctp.outboundStreamSeq = { 4: 7, 6: 2 };
    streams.reset(4);
    streams.assumeDone(6);
    expect([done, sctp.outboundStreamSeq]).toEqual([[], { 4: 7, 6: 2 }]);
    const { requestSequence } = raw.reconfigRequest!;
    streams.assumeDone(4);
    expect([done, sctp.outboundStreamSeq, raw.reconfigRequest]).toEqual([[4], { 6: 2 }, undefined]);
    sctp.outboundStreamSeq[4] = 1;
    await sctp.receiveReconfigParam({ type: 16, responseSequence: requestSequence, result: 1 });
    expect([done, sctp.outboundStreamSeq, sent.length]).toEqual([[4], { 4: 1, 6: 2 }, 1]);
  });
});
