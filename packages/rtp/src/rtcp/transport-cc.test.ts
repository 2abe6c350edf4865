import { describe, expect, test } from '@jest/globals';
import { fuzzRuns, operationsOf } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtcpPacketConverter, type RtcpTransportLayerFeedback, type TransportWideCC } from 'werift';
import { RtcpReader } from './reader.js';
import { TransportCcFeedback, TransportCcRecorder } from './transport-cc.js';
import { RtcpWriter } from './writer.js';

const operations = operationsOf('transport-cc.ts');

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Returns all feedback due, parsed by us: arrival (or null) by 16-bit sequence number, in the order reported. */
function collect(recorder: TransportCcRecorder, nowMs: number, capacity = 1200): [number, number | null][] {
  const results: [number, number | null][] = [];
  for (let i = 0; i < 200; i += 1) {
    const writer = new RtcpWriter(capacity);
    if (!recorder.write(writer, 2, nowMs)) return results;
    expect(writer.length % 4).toBe(0);
    const feedback = parse(writer.bytes());
    for (let at = 0; at < feedback.packetCount; at += 1) {
      const arrival = feedback.arrivalsMs[at]!;
      results.push([(feedback.baseSequence + at) % 65_536, Number.isNaN(arrival) ? null : arrival]);
    }
  }
  throw new Error('feedback without end');
}

function parse(bytes: Buffer): TransportCcFeedback {
  const reader = new RtcpReader();
  reader.open(bytes);
  expect(reader.next()).toBe(true);
  const feedback = new TransportCcFeedback();
  expect(feedback.parse(reader)).toBe(true);
  return feedback;
}

describe('transport-wide feedback', () => {
  const arrivals = fc.array(
    fc.record({
      gap: fc.oneof(fc.constant(1), fc.constant(1), fc.integer({ min: 1, max: 40 })),
      ms: fc.oneof(fc.nat(5), fc.nat(300)),
    }),
    { minLength: 1, maxLength: 150 },
  );

  test('reports every arrival to a quarter of a millisecond and every loss, once and in order', () => {
    fc.assert(
      fc.property(arrivals, fc.nat(65_535), fc.constantFrom(60, 100, 400, 1200), (steps, first, capacity) => {
        const recorder = new TransportCcRecorder({ senderSsrc: 1 });
        const expected = new Map<number, number>();
        let sequence = first;
        let now = 5000;
        const start = sequence;
        for (const [i, { gap, ms }] of steps.entries()) {
          if (i > 0) sequence += gap;
          now += ms;
          recorder.record(sequence % 65_536, now);
          expected.set(sequence, now);
        }
        const told = collect(recorder, now, capacity);
        expect(told.map(([number]) => number)).toEqual(told.map((_, i) => (start + i) % 65_536));
        expect(told.length).toBe(sequence - start + 1);
        const wrong = told.filter(([, arrival], i) => {
          const at = expected.get(start + i);
          return at === undefined ? arrival !== null : !(Math.abs(arrival! - at) <= 0.125);
        });
        expect(wrong).toEqual([]);
        expect(recorder.isDue(now + 1000)).toBe(false);
      }),
      { numRuns: fuzzRuns(400) },
    );
  });

  test('writes feedback that werift reads with the same result', () => {
    fc.assert(
      fc.property(arrivals, (steps) => {
        const recorder = new TransportCcRecorder({ senderSsrc: 0xabc });
        let sequence = 100;
        let now = 64_000;
        for (const { gap, ms } of steps) {
          sequence += gap;
          now += ms;
          recorder.record(sequence % 65_536, now);
        }
        const writer = new RtcpWriter();
        expect(recorder.write(writer, 0xdef, now)).toBe(true);
        const ours = parse(writer.bytes());
        const [packet] = RtcpPacketConverter.deSerialize(Buffer.from(writer.bytes())) as [RtcpTransportLayerFeedback];
        const theirs = packet.feedback as TransportWideCC;
        expect(theirs.baseSequenceNumber).toBe(ours.baseSequence);
        expect(theirs.packetStatusCount).toBe(ours.packetCount);
        expect(theirs.senderSsrc).toBe(0xabc);
        expect(theirs.mediaSourceSsrc).toBe(0xdef);
        expect(theirs.referenceTime * 64).toBe(ours.referenceTimeMs);
        let at = ours.referenceTimeMs;
        const received = [...ours.arrivalsMs.subarray(0, ours.packetCount)].filter((arrival) => !Number.isNaN(arrival));
        expect(theirs.recvDeltas.length).toBe(ours.received);
        const wrong = theirs.recvDeltas.filter(({ delta }, i) => {
          at += delta / 1000;

          return !(Math.abs(received[i]! - at) < 5e-7);
        });
        expect(wrong).toEqual([]);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('reads the chunk kinds of the draft: run length, one-bit and two-bit vectors', () => {
    // Base 1, 24 packets, reference 1: a run of 3 received, a one-bit vector 10000000000001, a two-bit vector 1 0 2 0 0
    // 0 0.
    const body = '00000001 00000002 0001 0018 000001 05 2003 a001 d200';
    const deltas = '04 04 04 08 08 0c fffc';
    const bytes = hex(`afcd0008 ${body} ${deltas} 0002`);
    const feedback = parse(bytes);
    const told = [...feedback.arrivalsMs.subarray(0, 24)].map((arrival) =>
      Number.isNaN(arrival) ? null : arrival - 64,
    );
    const expected: (number | null)[] = [
      1,
      2,
      3,
      5,
      ...Array.from({ length: 12 }, () => null),
      7,
      10,
      null,
      9,
      null,
      null,
      null,
      null,
    ];
    expect(told).toEqual(expected);
    expect(feedback.feedbackCount).toBe(5);
    expect(feedback.received).toBe(7);
    expect(feedback.referenceTimeMs).toBe(64);
  });

  test('sends feedback every interval while packets arrive, and increments its count', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1, intervalMs: 60 });
    expect(recorder.isDue(0)).toBe(false);
    const counts: number[] = [];
    for (let now = 0; now < 600; now += 10) {
      recorder.record((now / 10) % 65_536, now);
      if (!recorder.isDue(now)) continue;
      const writer = new RtcpWriter();
      recorder.write(writer, 2, now);
      counts.push(parse(writer.bytes()).feedbackCount);
    }
    expect(counts).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(recorder.isDue(10_000)).toBe(true);
  });

  test('reports late packets, even after reporting them missing, unless they are half a second late', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1 });
    recorder.record(10, 100);
    recorder.record(12, 101);
    recorder.record(11, 105);
    recorder.record(11, 106);
    expect(collect(recorder, 200)).toEqual([
      [10, 100],
      [11, 105],
      [12, 101],
    ]);
    recorder.record(14, 201);
    expect(collect(recorder, 260)).toEqual([
      [13, null],
      [14, 201],
    ]);
    recorder.record(12, 261);
    expect(recorder.isDue(400)).toBe(false);
    recorder.record(13, 262);
    recorder.record(15, 263);
    expect(collect(recorder, 320)).toEqual([
      [13, 262],
      [14, 201],
      [15, 263],
    ]);
    recorder.record(9, 601);
    expect(collect(recorder, 700)).toEqual([]);
  });

  test('does not search a wide gap again for each packet that is too late', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1 });
    const writer = new RtcpWriter();
    recorder.record(1, 0);
    recorder.record(4000, 0);
    while (recorder.write(writer, 1, 100)) writer.reset();
    const effort = operations(() => {
      for (let i = 0; i < 1_000; i++) recorder.record(2 + i, 2000);
    });
    // The gap is 4,000 packets wide.
    expect(effort).toBeLessThan(20_000);
    expect(recorder.isDue(2000)).toBe(false);
  });

  test('splits the feedback where two arrivals are more than 8 seconds apart', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1 });
    recorder.record(1, 1000);
    recorder.record(2, 20_000);
    expect(collect(recorder, 20_000)).toEqual([
      [1, 1000],
      [2, 20_000],
    ]);
  });

  test('starts over after a jump that no feedback could cover', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1 });
    recorder.record(1, 1000);
    recorder.record(30_000, 1001);
    expect(collect(recorder, 1100)).toEqual([[30_000, 1001]]);
  });

  test('waits for a larger datagram if there is no room', () => {
    const recorder = new TransportCcRecorder({ senderSsrc: 1 });
    recorder.record(1, 1000);
    const writer = new RtcpWriter(32);
    expect(recorder.write(writer, 2, 1100)).toBe(false);
    expect(writer.length).toBe(0);
    expect(collect(recorder, 1100)).toEqual([[1, 1000]]);
  });

  test('refuses feedback that claims more than 4,096 packets or none, or is truncated', () => {
    const reader = new RtcpReader();
    const feedback = new TransportCcFeedback();
    for (const body of [
      '0001 ffff 000001 00 1fff 0000',
      '0001 0000 000001 00 0000 0000',
      '0001 0008 000001 00 2008 0101',
      '0001 0001 000001 00 6001 0000',
    ]) {
      reader.open(hex(`8fcd0005 00000001 00000002 ${body}`));
      expect(reader.next()).toBe(true);
      expect(feedback.parse(reader)).toBe(false);
    }
  });

  test('refuses or reads garbage, never past its end and never with an exception', () => {
    let runs = 0;
    const reader = new RtcpReader();
    const feedback = new TransportCcFeedback();
    let read = 0;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(40), (body, count) => {
        runs += 1;
        const words = Math.floor(body.length / 4);
        const bytes = Buffer.concat([hex('8fcd0000 00000001 00000002'), body.subarray(0, words * 4)]);
        bytes.writeUInt16BE(words + 2, 2);
        if (words > 0) bytes.writeUInt16BE(count, 14);
        reader.open(bytes);
        expect(reader.next()).toBe(true);
        if (!feedback.parse(reader)) return;
        read += 1;
        const arrivals = feedback.arrivalsMs.subarray(0, feedback.packetCount);
        expect(arrivals.filter((arrival) => !Number.isNaN(arrival)).length).toBe(feedback.received);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect(read).toBeGreaterThan(runs / 10);
  });
});
