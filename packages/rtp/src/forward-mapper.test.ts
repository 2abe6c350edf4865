import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ForwardMapper } from './forward-mapper.js';

function start(sequence = 70_000, timestamp = 1000) {
  const mapper = new ForwardMapper({ clockRate: 90_000, firstSequence: 500, firstTimestamp: 7000 });
  mapper.switchTo(sequence, timestamp, 0);
  return mapper;
}

/** Returns the outbound number that `map` gives, or null if the packet is not sent. */
function mapped(mapper: ForwardMapper, sequence: number, timestamp = 1000, nowMs = 0): number | null {
  return mapper.map(sequence, timestamp, nowMs) ? mapper.sequence : null;
}

describe('outbound sequence numbers', () => {
  test('starts at the given number and follows the source, including gaps of loss', () => {
    const mapper = start();
    expect(mapped(mapper, 70_000)).toBe(500);
    expect(mapped(mapper, 70_001)).toBe(501);
    expect(mapped(mapper, 70_004)).toBe(504);
    expect(mapped(mapper, 70_005)).toBe(505);
    expect(mapper.timestamp).toBe(7000);
    expect(mapper.newestSequence).toBe(505);
  });

  test('gives late packets of the current source their own numbers', () => {
    const mapper = start();
    expect(mapped(mapper, 70_000)).toBe(500);
    expect(mapped(mapper, 70_003)).toBe(503);
    expect(mapped(mapper, 70_001)).toBe(501);
    expect(mapped(mapper, 70_002)).toBe(502);
  });

  test('continues without a gap on a switch, and drops packets from before it', () => {
    const mapper = start();
    mapped(mapper, 70_000);
    mapped(mapper, 70_001);
    mapper.switchTo(90_010, 400_000, 40);
    expect(mapped(mapper, 90_010, 400_000, 40)).toBe(502);
    expect(mapped(mapper, 90_009, 397_000, 41)).toBeNull();
    expect(mapped(mapper, 90_011, 400_000, 41)).toBe(503);
  });

  test('closes up behind dropped packets, even for late ones', () => {
    const mapper = start();
    mapped(mapper, 70_000);
    expect(mapper.drop(70_001)).toBe(true);
    expect(mapped(mapper, 70_003)).toBe(502);
    mapper.drop(70_004);
    mapper.drop(70_005);
    expect(mapped(mapper, 70_006)).toBe(503);
    expect(mapped(mapper, 70_002)).toBe(501);
    expect(mapped(mapper, 70_004)).toBeNull();
  });

  test('keeps numbers in place for padding that arrives after its successors, and says so', () => {
    const mapper = start();
    mapped(mapper, 70_000);
    mapped(mapper, 70_002);
    expect(mapper.drop(70_001)).toBe(false);
    expect(mapped(mapper, 70_003)).toBe(503);
  });

  test('never leaps so far that a receiver misjudges the roll-over counter, whatever the source sends', () => {
    const leap = 32_767;
    const mapper = start(100_000);
    let input = 100_000;
    let before = mapped(mapper, input)!;
    for (let i = 0; i < 1_000; i += 1) {
      // Packets without media, or too large to be forwarded, use up source numbers that nobody receives.
      mapper.drop((input += leap));
      input += i % 2 === 0 ? leap : 0;
      const next = mapped(mapper, (input += leap))!;
      expect(next - before).toBeGreaterThan(0);
      expect(next - before).toBeLessThan(leap / 4);
      before = next;
    }
    // Nor may many small leaps add up while a receiver gets nothing.
    for (let i = 0; i < 1_000; i += 1) mapped(mapper, (input += 900));
    expect(mapper.newestSequence - before).toBeLessThan(leap / 2);
  });

  test('never reuses numbers when packets from before a leap arrive late', () => {
    const mapper = start(100_000);
    for (const sequence of [100_000, 100_001, 100_004]) mapped(mapper, sequence);
    expect(mapped(mapper, 120_000)).toBe(506);
    expect(mapped(mapper, 100_002)).toBeNull();
    expect(mapped(mapper, 100_003)).toBeNull();
    expect(mapped(mapper, 119_999)).toBeNull();
    expect(mapped(mapper, 120_002)).toBe(508);
    expect(mapped(mapper, 120_001)).toBe(507);
  });

  test('gives unique numbers that ascend with the source and have gaps only for loss, whatever is dropped', () => {
    const steps = fc.array(
      fc.record({ drop: fc.boolean(), delay: fc.nat(3), lost: fc.nat(9).map((dice) => dice === 0) }),
      { minLength: 1, maxLength: 400 },
    );
    fc.assert(
      fc.property(steps, (plan) => {
        const mapper = start(100_000);
        expect(mapped(mapper, 100_000)).toBe(500);
        const arrivals = plan
          .map((step, i) => ({ ...step, sequence: 100_001 + i, at: i + (step.drop ? 0 : step.delay) }))
          .filter((step) => !step.lost)
          .toSorted((a, b) => a.at - b.at || a.sequence - b.sequence);
        const outputs = new Map<number, number>();
        let latePadding = 0;
        let newest = 100_000;
        for (const { sequence, drop } of arrivals) {
          if (drop) {
            if (sequence < newest) latePadding += 1;
            mapper.drop(sequence);
          } else {
            const output = mapped(mapper, sequence);
            if (output !== null) outputs.set(sequence, output);
          }
          newest = Math.max(newest, sequence);
        }
        const bySource = [...outputs].toSorted(([a], [b]) => a - b).map(([, output]) => output);
        expect(bySource).toEqual(bySource.toSorted((a, b) => a - b));
        expect(new Set(bySource).size).toBe(bySource.length);
        // Only lost packets, and padding that came too late to close up, leave gaps.
        const lost = plan.filter((step) => step.lost).length;
        const holes = mapper.newestSequence - 500 - bySource.length;
        expect(holes).toBeLessThanOrEqual(lost + latePadding);
        expect(holes).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('guesses no number for a very late packet from before the remembered drops', () => {
    const mapper = start();
    mapped(mapper, 70_000);
    for (let i = 1; i <= 300; i += 1) mapper.drop(70_001 + i);
    mapped(mapper, 70_400);
    expect(mapped(mapper, 70_001)).toBeNull();
  });
});

describe('outbound timestamps', () => {
  test('continues timestamps by wall time on a switch', () => {
    const mapper = start();
    mapper.map(70_000, 1000, 10_000);
    mapper.map(70_001, 4000, 10_033);
    mapper.switchTo(9, 123_456, 10_133);
    expect(mapper.map(9, 123_456, 10_133)).toBe(true);
    expect(mapper.timestamp).toBe(10_000 + 9000);
    mapper.map(10, 126_456, 10_166);
    expect(mapper.timestamp).toBe(10_000 + 9000 + 3000);
    expect(mapper.mapTimestamp(123_456)).toBe(19_000);
  });

  test('advances timestamps by at least 1 on a switch within the same millisecond', () => {
    const mapper = start();
    mapper.map(70_000, 1000, 10_000);
    mapper.switchTo(9, 5, 10_000);
    mapper.map(9, 5, 10_000);
    expect(mapper.timestamp).toBe(7001);
  });

  test('continues timestamps from the frame sent last, not from its last packet, and wraps', () => {
    const mapper = new ForwardMapper({ clockRate: 48_000, firstSequence: 1, firstTimestamp: 0xffffff00 });
    mapper.switchTo(100, 77, 0);
    mapper.map(100, 77, 1000);
    mapper.map(101, 77, 1008);
    mapper.switchTo(500, 9, 1020);
    mapper.map(500, 9, 1020);
    expect(mapper.timestamp).toBe((0xffffff00 + 960) % 4_294_967_296);
  });

  test('does not advance timestamps while nothing has been sent', () => {
    const mapper = start();
    mapper.switchTo(9, 5, 60_000);
    mapper.map(9, 5, 60_000);
    expect(mapper.sequence).toBe(500);
    expect(mapper.timestamp).toBe(7000);
  });
});

test('sends nothing before a source is chosen', () => {
  const mapper = new ForwardMapper({ clockRate: 90_000, firstSequence: 1, firstTimestamp: 1 });
  mapper.drop(4);
  expect(mapper.started).toBe(false);
  expect(mapper.map(5, 5, 5)).toBe(false);
  expect(mapper.newestSequence).toBe(0);
});
