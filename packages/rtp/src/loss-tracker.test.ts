import { describe, expect, test } from '@jest/globals';
import { fuzzRuns, operationsOf } from '@bloom/time/testing';
import fc from 'fast-check';
import { LossTracker } from './loss-tracker.js';

const operations = operationsOf('loss-tracker.ts');

const out = new Float64Array(64);

function due(tracker: LossTracker, nowMs: number, roundTripMs = 50): number[] {
  return [...out.subarray(0, tracker.due(nowMs, roundTripMs, out))];
}

describe('missing packets', () => {
  test('requests a missing packet after the reordering time, then once per round trip', () => {
    const tracker = new LossTracker();
    tracker.received(10, 0);
    tracker.received(13, 0);
    expect(due(tracker, 4)).toEqual([]);
    expect(due(tracker, 5)).toEqual([11, 12]);
    expect(due(tracker, 54)).toEqual([]);
    expect(due(tracker, 55)).toEqual([11, 12]);
    expect(tracker.requested).toBe(4);
  });

  test('does not request packets that were only late', () => {
    const tracker = new LossTracker();
    tracker.received(10, 0);
    tracker.received(12, 0);
    tracker.received(11, 3);
    tracker.received(11, 4);
    expect(due(tracker, 100)).toEqual([]);
    expect(tracker.recovered).toBe(1);
    expect(tracker.missing).toBe(0);
  });

  test('requests a packet at most every 20 ms, however short the round trip', () => {
    const tracker = new LossTracker();
    tracker.received(1, 0);
    tracker.received(3, 0);
    expect(due(tracker, 5, 1)).toEqual([2]);
    expect(due(tracker, 24, 1)).toEqual([]);
    expect(due(tracker, 25, 1)).toEqual([2]);
  });

  test('waits for a packet after the last attempt, and gives it up once it is too old', () => {
    const tracker = new LossTracker({ maxRetries: 2, maxAgeMs: 1000 });
    tracker.received(1, 0);
    tracker.received(3, 0);
    expect(due(tracker, 10)).toEqual([2]);
    expect(due(tracker, 100)).toEqual([2]);
    expect(due(tracker, 200)).toEqual([]);
    expect(tracker.abandoned).toBe(0);
    expect(tracker.missing).toBe(1);
    tracker.received(2, 900);
    expect(tracker.recovered).toBe(1);
    expect(tracker.missing).toBe(0);
    tracker.received(5, 1000);
    expect(due(tracker, 2001)).toEqual([]);
    expect(tracker.abandoned).toBe(1);
    expect(tracker.missing).toBe(0);
  });

  test('spends no more on gaps before every packet than on the number of missing packets', () => {
    const tracker = new LossTracker({ maxMissing: 512 });
    tracker.received(0, 0);
    const effort = operations(() => {
      for (let packet = 1; packet <= 100; packet++) tracker.received(packet * 1_000, packet);
    });
    expect(effort).toBeLessThan(100 * 512 * 2);
    expect(tracker.missing).toBe(512);
    expect(tracker.abandoned).toBe(100 * 999 - 512);
    expect(due(tracker, 200)[0]).toBe(100_000 - 512);
  });

  test('gives up the oldest missing packets for new ones above the limit', () => {
    const tracker = new LossTracker({ maxMissing: 4 });
    tracker.received(0, 0);
    tracker.received(7, 0);
    expect(due(tracker, 10)).toEqual([3, 4, 5, 6]);
    expect(tracker.abandoned).toBe(2);
  });

  test('requests nothing after an outage', () => {
    const tracker = new LossTracker();
    tracker.received(10, 0);
    tracker.received(12, 0);
    tracker.received(5000, 1);
    expect(due(tracker, 100)).toEqual([]);
    expect(tracker.abandoned).toBe(4988);
    tracker.received(5002, 100);
    expect(due(tracker, 110)).toEqual([5001]);
    tracker.clear();
    expect(due(tracker, 400)).toEqual([]);
  });

  test('requests what does not fit into one call in the next one', () => {
    const tracker = new LossTracker();
    tracker.received(0, 0);
    tracker.received(101, 0);
    expect(due(tracker, 10).length).toBe(64);
    expect(due(tracker, 10).length).toBe(36);
    expect(due(tracker, 10).length).toBe(0);
  });

  test('tracks exactly the packets not received as missing, whatever the order', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1000, max: 1060 }), { minLength: 1, maxLength: 50 }), (arrivals) => {
        const tracker = new LossTracker();
        tracker.received(999, 0);
        for (const sequence of arrivals) tracker.received(sequence, 0);
        const highest = Math.max(...arrivals);
        const expected: number[] = [];
        for (let sequence = 1000; sequence < highest; sequence += 1)
          if (!arrivals.includes(sequence)) expected.push(sequence);
        expect(due(tracker, 10)).toEqual(expected);
      }),
      { numRuns: fuzzRuns(1000) },
    );
  });
});
