import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { highestRung, ladderOf, rungOf, variantOf } from './rungs.js';

const ALL = { l: true, m: true, h: true };
const BITRATES = { l: 150_000, m: 500_000, h: 1_500_000 };

test('has one rung for each variant without temporal layers, up to the goal', () => {
  const costs = { active: { ...ALL, m: false }, bitratesBps: BITRATES };
  expect(ladderOf(costs, 'h').flatMap((bps) => bps ?? [])).toEqual([150_000, 1_500_000]);
  expect(highestRung(ladderOf(costs, 'm'), rungOf('h'))).toBe(rungOf('l'));
});

test('has fewer rungs for the variants above the lowest active one', () => {
  const reducedBps = { l: [90_000, 60_000], m: [300_000, 200_000], h: [900_000, 600_000] };
  const bpsOf = (active: typeof ALL): number[] =>
    ladderOf({ active, bitratesBps: BITRATES, reducedBps }, 'h').flatMap((bps) => bps ?? []);
  expect(bpsOf(ALL)).toEqual([60_000, 90_000, 150_000, 300_000, 500_000, 900_000, 1_500_000]);
  expect(bpsOf({ l: false, m: true, h: false })).toEqual([200_000, 300_000, 500_000]);
});

test('never has a rung that costs more than a better one with fewer layers, whatever they cost', () => {
  const bps = fc.integer({ min: 1, max: 3_000_000 });
  const reduced = fc.array(bps, { maxLength: 2 });
  fc.assert(
    fc.property(
      fc.record({ l: bps, m: bps, h: bps }),
      fc.record({ l: reduced, m: reduced, h: reduced }),
      fc.record({ l: fc.boolean(), m: fc.boolean(), h: fc.boolean() }),
      (bitratesBps, reducedBps, active) => {
        const ladder = ladderOf({ active, bitratesBps, reducedBps }, 'h');
        let cheapest = Infinity;
        for (let rung = ladder.length - 1; rung >= 0; rung -= 1) {
          const cost = ladder[rung];
          if (cost === undefined) continue;
          expect(active[variantOf(rung)]).toBe(true);
          expect(cost).toBeLessThan(cheapest);
          if (rung !== rungOf(variantOf(rung))) cheapest = cost;
        }
      },
    ),
    { numRuns: fuzzRuns(500) },
  );
});
