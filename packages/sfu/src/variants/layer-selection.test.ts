import { describe, expect, test } from '@jest/globals';
import { EntryPoint, type PayloadReader } from '@bloom/rtp';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ALL_LAYERS, LayerRates } from './layer-rates.js';
import { LayerSelection } from './layer-selection.js';

interface Layers {
  spatial?: number;
  temporal?: number;
  key?: boolean;
  switchesUp?: boolean;
}

function packet({ spatial = 0, temporal = 0, key = false, switchesUp = false }: Layers): PayloadReader {
  return {
    entryPoint: key && spatial === 0 ? EntryPoint.yes : EntryPoint.no,
    spatialLayer: spatial,
    temporalLayer: temporal,
    endsLayer: true,
    switchesTo: switchesUp ? temporal : -1,
    headerLength: 0,
    read: () => true,
    write: () => 0,
  };
}

/** Rates of a stream with 100, 400 and 1,600 kbit/s by size, of which the temporal layers have 1/4, 1/4 and 1/2. */
function rates(temporal = 3): LayerRates {
  const measured = new LayerRates();
  for (let ms = 0; ms <= 3_000; ms += 250) {
    for (const [spatial, bps] of [100_000, 300_000, 1_200_000].entries()) {
      for (let layer = 0; layer < temporal; layer += 1) {
        const share = temporal === 1 ? 1 : [1 / 4, 1 / 4, 1 / 2][layer]!;
        measured.count(packet({ spatial, temporal: layer }), (bps * share) / 32, ms);
      }
    }
  }
  return measured;
}

/** A stream with one size and three temporal layers. */
const LOWEST = (() => {
  const measured = new LayerRates();
  for (const temporal of [0, 1, 2]) measured.count(packet({ temporal }), 100, 0);
  return measured;
})();

describe('measured layers', () => {
  test('have the rate of all layers below them', () => {
    const measured = rates();
    const { active, bitratesBps, reducedBps } = measured.costs();
    expect(active).toEqual({ l: true, m: true, h: true });
    expect(bitratesBps).toEqual({ l: 100_000, m: 400_000, h: 1_600_000 });
    expect(reducedBps).toEqual({ l: [50_000, 25_000], m: [200_000, 100_000], h: [800_000, 400_000] });
    expect(measured.shares()).toEqual([0.5, 0.25]);
    expect(measured.bpsOf({ spatial: 2, temporal: 1 })).toBe(800_000);
    expect(measured.isLayered).toBe(true);
  });

  test('count as soon as they appear, and end with the first interval that has none of them', () => {
    const measured = new LayerRates();
    measured.count(packet({}), 100, 0);
    expect(measured.isLayered).toBe(false);
    measured.count(packet({ spatial: 2, temporal: 1 }), 100, 10);
    expect([measured.spatial, measured.temporal]).toEqual([3, 2]);
    for (const ms of [1_010, 1_500, 2_020]) measured.count(packet({}), 100, ms);
    expect([measured.spatial, measured.temporal]).toEqual([1, 1]);
  });

  test('take any layers and any clock', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(7), fc.nat(7), fc.nat(1_500), fc.nat(3_000))), (packets) => {
        const measured = new LayerRates();
        let nowMs = 0;
        for (const [spatial, temporal, bytes, elapsedMs] of packets) {
          measured.count(packet({ spatial, temporal }), bytes, (nowMs += elapsedMs));
          expect(measured.spatial).toBeLessThanOrEqual(3);
          expect(measured.temporal).toBeLessThanOrEqual(3);
        }
        const { active, bitratesBps, reducedBps } = measured.costs();
        const present = (['l', 'm', 'h'] as const).filter((variant) => active[variant]);
        expect(present.at(-1)).toBe('h');
        const whole = present.map((variant) => bitratesBps[variant]);
        expect(whole).toEqual(whole.toSorted((a, b) => a - b));
        for (const variant of present) {
          expect(reducedBps?.[variant]).toHaveLength(measured.temporal - 1);
          expect(reducedBps?.[variant].every((bps) => bps <= bitratesBps[variant])).toBe(true);
        }
        expect(measured.shares().every((share) => share >= 0 && share <= 1)).toBe(true);
        expect(measured.steps().length).toBeGreaterThan(0);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});

describe('selected layers', () => {
  test.each([
    [Infinity, ALL_LAYERS],
    [1_770_000, ALL_LAYERS],
    [900_000, { spatial: 2, temporal: 1 }],
    [500_000, { spatial: 1, temporal: 2 }],
    [115_000, { spatial: 0, temporal: 2 }],
    [60_000, { spatial: 0, temporal: 1 }],
    [1, { spatial: 0, temporal: 0 }],
  ])('are the most that fit into %d bit/s', (bps, wanted) => {
    const selection = new LayerSelection();
    selection.setAllocation(bps, rates());
    expect(selection.wanted).toEqual(wanted);
  });

  test('end a picture with the last packet before another picture, or before a layer that does not flow', () => {
    const selection = new LayerSelection();
    expect(selection.takes(packet({ key: true }), 1, true)).toBe(true);
    expect([-1, 1, 2, Infinity].map((next) => selection.endsPicture(packet({}), next))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    selection.wanted = { spatial: 1, temporal: 2 };
    expect(selection.takes(packet({}), 2, true)).toBe(true);
    expect([-1, 1, 2, Infinity].map((next) => selection.endsPicture(packet({}), next))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect([0, 1].map((spatial) => selection.mayGoOn(packet({ spatial })))).toEqual([true, false]);
  });

  test('shrink with the next picture, and grow with a key picture only', () => {
    const selection = new LayerSelection();
    expect(selection.takes(packet({ key: true }), 1, true)).toBe(true);
    expect(selection.wantsKeyframe(rates(1), 0)).toBe(false);
    selection.setAllocation(115_000, rates(1));
    expect(selection.wantsKeyframe(rates(1), 0)).toBe(true);
    expect(selection.takes(packet({ spatial: 2 }), 1, true)).toBe(true);
    expect(selection.takes(packet({}), 2, true)).toBe(true);
    expect(selection.endsPicture(packet({}), 1)).toBe(true);
    expect(selection.takes(packet({ spatial: 1 }), 2, true)).toBe(false);
    selection.setAllocation(Infinity, rates(1));
    expect(selection.wantsKeyframe(rates(1), 0)).toBe(true);
    expect(selection.takes(packet({ spatial: 1 }), 3, true)).toBe(false);
    expect(selection.takes(packet({ key: true }), 4, true)).toBe(true);
    expect(selection.takes(packet({ key: true, spatial: 2 }), 4, true)).toBe(true);
    expect(selection.wantsKeyframe(rates(1), 0)).toBe(false);
  });

  test('wait for the next key picture when the start of this one comes late', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.setAllocation(115_000, rates(1));
    selection.takes(packet({}), 2, true);
    selection.setAllocation(Infinity, rates(1));
    expect(selection.takes(packet({ spatial: 1, key: true }), 3, true)).toBe(false);
    expect(selection.takes(packet({ key: true }), 3, false)).toBe(true);
    expect(selection.takes(packet({ spatial: 2, key: true }), 3, true)).toBe(false);
    expect(selection.wantsKeyframe(rates(1), 0)).toBe(true);
  });

  test('get more pictures per second where the stream allows it', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.setAllocation(1, rates());
    expect(selection.takes(packet({ temporal: 2 }), 2, true)).toBe(false);
    selection.setAllocation(Infinity, rates());
    expect(selection.takes(packet({ temporal: 2 }), 3, true)).toBe(false);
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 4, true)).toBe(true);
    expect(selection.takes(packet({ temporal: 2 }), 5, true)).toBe(false);
    expect(selection.takes(packet({ temporal: 2, switchesUp: true }), 6, true)).toBe(true);
  });

  test('get more pictures per second after a picture of the base from which more layers can be decoded', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.setAllocation(1, rates());
    expect(selection.takes(packet({ temporal: 1 }), 2, true)).toBe(false);
    selection.setAllocation(70_000, rates());
    expect(selection.takes({ ...packet({}), switchesTo: 2 }, 3, true)).toBe(true);
    expect(selection.takes(packet({ temporal: 2 }), 4, true)).toBe(false);
    expect(selection.takes(packet({ temporal: 1 }), 5, true)).toBe(true);
  });

  test('grow by one temporal layer at a time where a picture of the upper one refers to the one between', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(2, { temporal: 3 });
    expect(selection.takes(packet({ temporal: 1 }), 2, true)).toBe(false);
    selection.leaveOut(0, { temporal: 3 });
    expect(selection.takes(packet({ temporal: 2, switchesUp: true }), 3, true)).toBe(false);
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 4, true)).toBe(true);
    expect(selection.takes(packet({ temporal: 2, switchesUp: true }), 5, true)).toBe(true);
  });

  test('change between pictures only, so that none arrives in part', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(1, { temporal: 2 });
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 2, true)).toBe(false);
    selection.leaveOut(0, { temporal: 2 });
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 2, true)).toBe(false);
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 3, true)).toBe(true);
    selection.leaveOut(1, { temporal: 2 });
    expect(selection.takes(packet({ temporal: 1, switchesUp: true }), 3, true)).toBe(true);
  });

  test('get more pictures per second at a packet behind a delimiter that was left out', () => {
    const selection = new LayerSelection();
    const delimiter = { ...packet({ temporal: 1 }), hasPicture: false };
    const upper = packet({ temporal: 1, switchesUp: true });
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(1, { temporal: 2 });
    expect(selection.takes(delimiter, 2, true)).toBe(false);
    expect(selection.takes(upper, 2, true)).toBe(false);
    selection.leaveOut(0, { temporal: 2 });
    expect(selection.takes(delimiter, 3, true)).toBe(false);
    expect(selection.takes(upper, 3, true)).toBe(true);
    expect(selection.takes(delimiter, 4, true)).toBe(true);
    expect(selection.takes(upper, 2, false)).toBe(false);
  });

  test('grow with a key picture whose delimiter has a packet of its own', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.setAllocation(1, rates());
    selection.takes(packet({}), 2, true);
    selection.setAllocation(Infinity, rates());
    expect(selection.takes(packet({}), 3, true)).toBe(true);
    expect(selection.takes(packet({ key: true }), 3, true)).toBe(true);
    expect(selection.takes(packet({ spatial: 2, temporal: 2 }), 3, true)).toBe(true);
  });

  test('before a picture at which they shrank and grew again are the same for its late packets', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(1, { temporal: 2 });
    selection.takes(packet({}), 3, true);
    selection.leaveOut(0, { temporal: 2 });
    selection.takes({ ...packet({}), switchesTo: 1 }, 3, true);
    expect(selection.takes(packet({ temporal: 1 }), 2, false)).toBe(true);
  });

  test('of a packet that comes late are those that its picture had', () => {
    const selection = new LayerSelection();
    const upper = packet({ temporal: 1, switchesUp: true });
    selection.takes(packet({ key: true }), 1, true);
    expect(selection.takes(upper, 2, true)).toBe(true);
    selection.leaveOut(1, { temporal: 2 });
    expect(selection.takes(packet({}), 3, true)).toBe(true);
    expect(selection.takes(upper, 2, false)).toBe(true);
    expect(selection.takes(upper, 4, true)).toBe(false);
    selection.leaveOut(0, { temporal: 2 });
    expect(selection.takes(upper, 5, true)).toBe(true);
    expect(selection.takes(upper, 4, false)).toBe(false);
  });

  test('want a key picture when a stream has not allowed more pictures per second for 2 s', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(1, rates());
    selection.takes(packet({ temporal: 2 }), 2, true);
    expect(selection.wantsKeyframe(LOWEST, 0)).toBe(false);
    selection.leaveOut(0, rates());
    for (const [timestamp, nowMs] of [1_000, 2_000, 2_999].entries()) {
      selection.takes(packet({}), 3 + timestamp, true);
      expect(selection.wantsKeyframe(LOWEST, nowMs)).toBe(false);
    }
    expect(selection.wantsKeyframe(LOWEST, 3_000)).toBe(true);
    expect(selection.wantsKeyframe(LOWEST, 3_200)).toBe(false);
    selection.takes(packet({ key: true }), 6, true);
    expect(selection.wantsKeyframe(LOWEST, 9_000)).toBe(false);
  });

  test('want no key picture for more pictures per second while none come, however long', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.leaveOut(1, rates());
    selection.takes(packet({}), 2, true);
    selection.wantsKeyframe(LOWEST, 0);
    selection.leaveOut(0, rates());
    for (let ms = 0; ms < 10_000; ms += 100) expect(selection.wantsKeyframe(LOWEST, ms)).toBe(false);
    selection.takes(packet({}), 3, true);
    expect(selection.wantsKeyframe(LOWEST, 10_000)).toBe(false);
    for (let ms = 10_100; ms < 60_000; ms += 100) expect(selection.wantsKeyframe(LOWEST, ms)).toBe(false);
    selection.takes(packet({}), 4, true);
    expect(selection.wantsKeyframe(LOWEST, 60_000)).toBe(true);
  });

  test('want one key picture for another size while no picture comes', () => {
    const selection = new LayerSelection();
    selection.takes(packet({ key: true }), 1, true);
    selection.setAllocation(115_000, rates(1));
    expect([selection.wantsKeyframe(rates(1), 0), selection.wantsKeyframe(rates(1), 5_000)]).toEqual([true, false]);
    selection.takes(packet({}), 2, true);
    selection.setAllocation(Infinity, rates(1));
    expect([selection.wantsKeyframe(rates(1), 0), selection.wantsKeyframe(rates(1), 5_000)]).toEqual([true, false]);
    selection.takes(packet({}), 3, true);
    expect(selection.wantsKeyframe(rates(1), 6_000)).toBe(true);
  });

  test('name the variant and the temporal layers that the bandwidth was divided by', () => {
    const selection = new LayerSelection();
    const named = [Infinity, 900_000, 500_000, 60_000, 1].map((bps) => {
      selection.setAllocation(bps, rates());
      return [selection.variant(rates()), selection.fewer(rates())];
    });
    expect(named).toEqual([
      ['h', 0],
      ['h', 1],
      ['m', 0],
      ['l', 1],
      ['l', 2],
    ]);
  });
});
