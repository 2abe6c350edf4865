import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { BandwidthEstimator } from './bandwidth-estimator.js';
import { SentPackets } from './sent-packets.js';

describe('sent packets', () => {
  test('finds a sent packet once under its 16-bit number', () => {
    const sent = new SentPackets();
    for (let i = 0; i < 70_000; i++) sent.add(i % 1000, 0, i);
    const sequence = sent.unwrap(69_000 & 0xffff);
    expect(sequence).toBe(69_000);
    expect(sent.take(sequence)).toBe(true);
    expect(sent.takenBytes).toBe(0);
    expect(sent.takenSentMs).toBe(69_000);
    expect(sent.takenProbe).toBe(0);
    expect(sent.take(sequence)).toBe(false);
  });

  test('keeps all sent packets while the rate grows the memory, up to its limit', () => {
    const sent = new SentPackets();
    for (let i = 0; i < 16_384; i++) sent.add(100 + (i % 7), 3, i);
    for (let i = 0; i < 16_384; i++) {
      const right = sent.take(i) && sent.takenBytes === 100 + (i % 7) && sent.takenProbe === 3;
      if (!right) expect([i, sent.takenBytes, sent.takenProbe]).toBe('taken as it was added');
    }
  });

  test('reports a packet missing once, however often it is reported, and not after it has arrived', () => {
    const sent = new SentPackets();
    for (let i = 0; i < 3; i++) sent.add(100, 0, i);
    expect(sent.miss(1)).toBe(true);
    expect(sent.miss(1)).toBe(false);
    expect(sent.miss(2)).toBe(true);
    expect(sent.take(1)).toBe(true);
    expect(sent.takenMissing).toBe(true);
    expect(sent.miss(1)).toBe(false);
    expect(sent.take(0)).toBe(true);
    expect(sent.takenMissing).toBe(false);
  });

  test('keeps packets missing while the memory grows, and later ones find their places clean', () => {
    const sent = new SentPackets();
    for (let i = 0; i < 20_000; i++) {
      sent.add(100, 0, i);
      if (i === 2) sent.miss(1);
      if (i === 600) {
        expect(sent.take(1)).toBe(true);
        expect(sent.takenMissing).toBe(true);
      }
      if (i >= 1_000) sent.miss(i - 500);
    }
    // At most 16,384 are kept, so this packet replaces a missing one.
    expect(sent.take(19_999)).toBe(true);
    expect(sent.takenMissing).toBe(false);
  });

  test('frees the places of acknowledged and missing packets and keeps the others', () => {
    const sent = new SentPackets();
    for (let i = 0; i < 100_000; i++) {
      sent.add(100, 0, i);
      if (i < 100) continue;
      if (i % 50 === 0) sent.miss(i - 100);
      else sent.take(i - 100);
    }
    expect(sent.size).toBe(512);
    for (let i = 0; i < 1_000; i++) sent.add(100, 0, i);
    expect(sent.unwrap(99_950 & 0xffff)).toBe(99_950);
    expect(sent.size).toBe(2_048);
  });

  test('does not know packets that were never sent', () => {
    const sent = new SentPackets();
    expect(sent.unwrap(0)).toBe(-1);
    sent.add(1, 0, 0);
    expect(sent.unwrap(1)).toBe(-1);
    expect(sent.take(5)).toBe(false);
  });
});

test('keeps the estimate within its limits, whatever a client claims', () => {
  const step = fc.record({
    send: fc.nat(30),
    probe: fc.boolean(),
    claims: fc.array(fc.tuple(fc.nat(0xffff), fc.option(fc.double({ min: -1e9, max: 1e9, noNaN: true }))), {
      maxLength: 20,
    }),
    recent: fc.array(fc.tuple(fc.nat(40), fc.option(fc.nat(5000))), { maxLength: 20 }),
    pauseMs: fc.nat(2000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const estimator = new BandwidthEstimator();
      let now = 0;
      for (const { send, probe, claims, recent, pauseMs } of steps) {
        now += pauseMs;
        if (probe) estimator.startProbe(now);
        for (let i = 0; i < send; i++) estimator.packetSent(1200, now + i, probe);
        if (pauseMs % 2 === 0) estimator.endProbe();
        const newest = estimator.nextSequence;
        const feedback = [...claims, ...recent.map(([back, at]) => [(newest - back) & 0xffff, at] as const)];
        for (const [sequence, arrivalMs] of feedback) {
          if (arrivalMs === null) estimator.lost(sequence);
          else estimator.received(sequence, arrivalMs);
        }
        estimator.feedbackEnd(now);
        const { estimateBps } = estimator;
        if (estimateBps === undefined) continue;
        expect(estimateBps).toBeGreaterThanOrEqual(50_000);
        expect(estimateBps).toBeLessThanOrEqual(100_000_000);
      }
    }),
    { numRuns: fuzzRuns(2_000) },
  );
});
