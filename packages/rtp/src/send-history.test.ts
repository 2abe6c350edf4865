import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { SendHistory } from './send-history.js';

describe('send history', () => {
  test('returns everything that was recorded, by 16-bit number', () => {
    const entry = fc.record({
      source: fc.nat(255),
      sourceSequence: fc.nat(2 ** 40),
      timestamp: fc.nat(0xffffffff),
      numbers: fc.integer(),
    });
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 60 }), fc.nat(200_000), (entries, first) => {
        const history = new SendHistory(64);
        for (const [i, e] of entries.entries()) {
          history.record(first + i, e.source, e.sourceSequence, e.timestamp, e.numbers);
        }
        const found = entries.map((_, i) => {
          if (!history.find((first + i) % 65_536)) return undefined;
          const { sequence, source, sourceSequence, timestamp, numbers } = history;
          return { sequence, source, sourceSequence, timestamp, numbers };
        });
        expect(found).toEqual(entries.map((one, i) => ({ ...one, sequence: first + i })));
        expect(history.find((first + entries.length) % 65_536)).toBe(false);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('finds nothing before the first packet, under unsent numbers, or in the distant past', () => {
    const history = new SendHistory(16);
    expect(history.find(0)).toBe(false);
    for (let sequence = 100; sequence < 140; sequence += 1) history.record(sequence, 0, 0, 0, 0);
    expect(history.find(99)).toBe(false);
    expect(history.find(120)).toBe(false);
    expect(history.find(124)).toBe(true);
    expect(history.find(139)).toBe(true);
    expect(history.find(140)).toBe(false);
  });

  test('takes no memory for a stream that has sent nothing', () => {
    const before = process.memoryUsage().arrayBuffers;
    const idle = Array.from({ length: 1_000 }, () => new SendHistory(1024));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
    expect(idle.some((history) => history.find(0))).toBe(false);
  });

  test('allows one retransmission per round trip', () => {
    const history = new SendHistory();
    history.record(5, 0, 0, 0, 0);
    history.find(5);
    expect(history.mayResend(1000, 50)).toBe(true);
    expect(history.mayResend(1049, 50)).toBe(false);
    expect(history.mayResend(1050, 50)).toBe(true);
    history.record(5 + 512, 0, 0, 0, 0);
    history.find(5 + 512);
    expect(history.mayResend(1051, 50)).toBe(true);
  });
});
