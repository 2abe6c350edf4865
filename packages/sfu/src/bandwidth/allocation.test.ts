import { describe, expect, test } from '@jest/globals';
import { BandwidthAllocation, type AllocationSlot } from './allocation.js';

const BITRATES = { l: 150_000, m: 500_000, h: 1_500_000 };

function slot(key: string, over: Partial<AllocationSlot<string>> = {}): AllocationSlot<string> {
  return {
    key,
    target: 'h',
    wanted: 'm',
    active: { l: true, m: true, h: true },
    bitratesBps: BITRATES,
    negotiable: true,
    sendingBps: 500_000,
    ...over,
  };
}

describe('bandwidth allocation', () => {
  test('grants everything while nothing has been measured', () => {
    const allocation = new BandwidthAllocation<string>();
    const { grants, probeBps } = allocation.update({
      estimateBps: undefined,
      fixedBps: 0,
      slots: [slot('a')],
      nowMs: 0,
    });
    expect(grants.get('a')).toBe(Infinity);
    expect(probeBps).toBeUndefined();
  });

  test('lets a new slot have its target until congestion shows', () => {
    const allocation = new BandwidthAllocation<string>();
    const { grants } = allocation.update({ estimateBps: 600_000, fixedBps: 0, slots: [slot('a')], nowMs: 0 });
    expect(grants.get('a')).toBeGreaterThanOrEqual(1_650_000);
  });

  test('does not let a slot whose next variant does not fit hold up the others', () => {
    const allocation = new BandwidthAllocation<string>();
    const cheap = slot('a', { bitratesBps: { ...BITRATES, m: 300_000 }, target: 'm', sendingBps: 300_000 });
    const dear = slot('b', { target: 'm' });
    const update = (estimateBps: number, slots: AllocationSlot<string>[], nowMs: number) =>
      allocation.update({ estimateBps, fixedBps: 0, slots, nowMs });
    expect(update(550_000, [cheap, dear], 0).grants.get('b')).toBe(165_000);
    // The first slot wants more than will ever be available, the second only what it had.
    const slots = [
      { ...cheap, target: 'h' as const },
      { ...dear, wanted: 'l' as const, sendingBps: 150_000 },
    ];
    const { grants, probeBps } = update(1_100_000, slots, 10_000);
    expect(grants.get('b')).toBeGreaterThanOrEqual(550_000);
    expect(probeBps).toBeUndefined();
    expect(update(1_100_000, slots, 12_000).probeBps).toBeGreaterThan(1_800_000);
  });

  test('steps slots down until the rest fits when the estimate is below 0.8 of the sending rate', () => {
    const allocation = new BandwidthAllocation<string>();
    const big = slot('a', { wanted: 'h', sendingBps: 1_500_000 });
    const { grants } = allocation.update({ estimateBps: 340_000, fixedBps: 40_000, slots: [big], nowMs: 0 });
    expect(grants.get('a')).toBe(165_000);
  });

  test('steps down when the estimate stays slightly below the sending rate, but not if it recovers within 2 s', () => {
    const filling = slot('a', { wanted: 'm', sendingBps: 380_000 });
    const seen = (estimates: (nowMs: number) => number): number | undefined => {
      const allocation = new BandwidthAllocation<string>();
      let granted: number | undefined;
      for (let nowMs = 0; nowMs <= 4_000; nowMs += 200) {
        const { grants } = allocation.update({ estimateBps: estimates(nowMs), fixedBps: 0, slots: [filling], nowMs });
        granted = grants.get('a');
        if (granted === 165_000) return nowMs;
      }
      return undefined;
    };
    expect(seen((nowMs) => 318_000 + (nowMs % 1_000) * 10)).toBe(2_000);
    expect(seen((nowMs) => 323_000 * 1.08 ** (nowMs / 1_000))).toBeUndefined();
  });

  test('steps down the costliest slot first', () => {
    const allocation = new BandwidthAllocation<string>();
    const slots = [
      slot('small', { target: 'm', wanted: 'm', sendingBps: 500_000 }),
      slot('big', { wanted: 'h', sendingBps: 1_500_000 }),
    ];
    const { grants } = allocation.update({ estimateBps: 1_200_000, fixedBps: 0, slots, nowMs: 0 });
    expect(grants.get('big')).toBeLessThan(600_000);
    expect(grants.get('small')).toBeGreaterThanOrEqual(550_000);
  });

  test('never takes the lowest variant away, however little bandwidth is available', () => {
    const allocation = new BandwidthAllocation<string>();
    const { grants } = allocation.update({
      estimateBps: 50_000,
      fixedBps: 0,
      slots: [slot('a', { sendingBps: 150_000, wanted: 'l' })],
      nowMs: 0,
    });
    expect(grants.get('a')).toBeGreaterThanOrEqual(165_000);
  });

  test('leaves a slot alone for its first half second', () => {
    const allocation = new BandwidthAllocation<string>();
    const young = slot('a', { wanted: 'h', sendingBps: 1_500_000, negotiable: false });
    expect(allocation.update({ estimateBps: 300_000, fixedBps: 0, slots: [young], nowMs: 0 }).grants.get('a')).toBe(
      Infinity,
    );
  });

  test('requests a probe when the next variant does not fit, and grants the variant when it does', () => {
    const allocation = new BandwidthAllocation<string>();
    const low = slot('a', { wanted: 'l', sendingBps: 150_000 });
    allocation.update({ estimateBps: 100_000, fixedBps: 0, slots: [{ ...low, sendingBps: 400_000 }], nowMs: 0 });
    const asked = allocation.update({ estimateBps: 300_000, fixedBps: 0, slots: [low], nowMs: 10_000 });
    expect(asked.probeBps).toBeGreaterThan(550_000);
    expect(asked.probeBps).toBeLessThan(700_000);
    expect(asked.grants.get('a')).toBe(165_000);
    const raised = allocation.update({ estimateBps: 600_000, fixedBps: 0, slots: [low], nowMs: 11_000 });
    expect(raised.grants.get('a')).toBe(550_000);
    expect(raised.probeBps).toBeUndefined();
  });

  test('does not raise a slot to a variant that would barely fit', () => {
    const allocation = new BandwidthAllocation<string>();
    const low = slot('a', { target: 'm', wanted: 'l', sendingBps: 150_000 });
    allocation.update({ estimateBps: 100_000, fixedBps: 0, slots: [{ ...low, sendingBps: 400_000 }], nowMs: 0 });
    const update = (estimateBps: number, nowMs: number) =>
      allocation.update({ estimateBps, fixedBps: 0, slots: [low], nowMs }).probeBps;
    // The variant takes 500,000 bit/s, with a tenth to spare.
    expect(update(540_000, 10_000)).toBeGreaterThan(550_000);
    expect(update(560_000, 11_000)).toBeUndefined();
  });

  test('raises one slot at a time, in turn, a second apart', () => {
    const allocation = new BandwidthAllocation<string>();
    const low = (key: string) => slot(key, { wanted: 'l', sendingBps: 150_000 });
    const slots = ['a', 'b', 'c'].map(low);
    const sending = slots.map((one) => ({ ...one, sendingBps: 1_500_000 }));
    allocation.update({ estimateBps: 500_000, fixedBps: 0, slots: sending, nowMs: 0 });
    const grants = (nowMs: number): string => {
      const all = allocation.update({ estimateBps: 9_000_000, fixedBps: 0, slots, nowMs }).grants;
      return slots.map(({ key }) => (all.get(key)! < 300_000 ? 'l' : all.get(key)! < 1_000_000 ? 'm' : 'h')).join('');
    };
    expect(grants(1_999)).toBe('lll');
    expect(grants(2_000)).toBe('mll');
    expect(grants(2_999)).toBe('mll');
    expect(grants(3_000)).toBe('mml');
    expect(grants(3_999)).toBe('mml');
    expect(grants(4_000)).toBe('mmm');
    expect(grants(5_000)).toBe('hmm');
    expect(grants(6_000)).toBe('hhm');
    expect(grants(7_000)).toBe('hhh');
  });

  test('lengthens the wait after each failed step up', () => {
    const allocation = new BandwidthAllocation<string>();
    const at = (variant: 'l' | 'm', sendingBps: number) => [slot('a', { target: 'm', wanted: variant, sendingBps })];
    let now = 0;
    allocation.update({ estimateBps: 200_000, fixedBps: 0, slots: at('m', 500_000), nowMs: now });
    const waits: number[] = [];
    for (let round = 0; round < 7; round++) {
      const from = now;
      let grant = 0;
      while (grant < 550_000) {
        now += 500;
        grant = allocation
          .update({ estimateBps: 700_000, fixedBps: 0, slots: at('l', 150_000), nowMs: now })
          .grants.get('a')!;
        expect(now).toBeLessThan(1_000_000);
      }
      waits.push(now - from);
      now += 1500;
      allocation.update({ estimateBps: 200_000, fixedBps: 0, slots: at('m', 500_000), nowMs: now });
    }
    expect(waits[0]).toBeLessThanOrEqual(3000);
    expect(waits[1]).toBeGreaterThanOrEqual(14_000);
    expect(waits[2]).toBeGreaterThan(waits[1]!);
    expect(waits[3]).toBeGreaterThan(waits[2]!);
    // At most two minutes.
    expect(Math.max(...waits)).toBeGreaterThan(110_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(120_500);
  });

  /** A slot whose step up to 500,000 bit/s at an estimate of 600,000 has just failed, at 11,000 ms. */
  function failed(): (provenBps: number, nowMs: number, sendingBps?: number) => ReturnType<typeof allocation.update> {
    const allocation = new BandwidthAllocation<string>();
    const update = (estimateBps: number, provenBps: number, nowMs: number, sendingBps = 150_000) => {
      const slots = [slot('a', { target: 'm', wanted: sendingBps > 150_000 ? 'm' : 'l', sendingBps })];
      return allocation.update({ estimateBps, provenBps, fixedBps: 0, slots, nowMs });
    };
    update(200_000, 0, 0, 500_000);
    expect(update(600_000, 0, 10_000).grants.get('a')).toBeGreaterThanOrEqual(550_000);
    expect(update(200_000, 0, 11_000, 500_000).grants.get('a')).toBe(165_000);
    return (provenBps, nowMs, sendingBps) => update(Math.max(provenBps, 200_000), provenBps, nowMs, sendingBps);
  }

  test('probes during the wait for clearly more than was expected, once the queue has drained', () => {
    const update = failed();
    expect(update(0, 12_900).probeBps).toBeUndefined();
    expect(update(0, 13_000).probeBps).toBeGreaterThan(900_000);
  });

  test('ends the wait when a probe has found clearly more than was expected', () => {
    const update = failed();
    expect(update(899_999, 13_000).grants.get('a')).toBe(165_000);
    expect(update(900_000, 13_200).grants.get('a')).toBeGreaterThanOrEqual(550_000);
  });

  test('does not believe probes again after a step up that they caused failed', () => {
    const update = failed();
    expect(update(900_000, 13_000).grants.get('a')).toBeGreaterThanOrEqual(550_000);
    update(0, 14_000, 500_000);
    const later = update(9_000_000, 40_000);
    expect(later.grants.get('a')).toBe(165_000);
    expect(later.probeBps).toBeUndefined();
    expect(update(9_000_000, 46_000).grants.get('a')).toBeGreaterThanOrEqual(550_000);
  });

  test('raises a slot without its target to the best variant, and requests a probe if that does not fit', () => {
    const allocation = new BandwidthAllocation<string>();
    const active = { l: true, m: false, h: true };
    const low = slot('a', { target: 'm', wanted: 'l', active, sendingBps: 150_000 });
    allocation.update({ estimateBps: 100_000, fixedBps: 0, slots: [{ ...low, sendingBps: 400_000 }], nowMs: 0 });
    const asked = allocation.update({ estimateBps: 300_000, fixedBps: 0, slots: [low], nowMs: 10_000 });
    expect(asked.probeBps).toBeGreaterThan(1_650_000);
    expect(asked.grants.get('a')).toBe(165_000);
    const raised = allocation.update({ estimateBps: 1_700_000, fixedBps: 0, slots: [low], nowMs: 11_000 });
    expect(raised.grants.get('a')).toBeGreaterThanOrEqual(1_650_000);
  });

  test('keeps a variant that replaced a target within the spare rate while it flows', () => {
    const allocation = new BandwidthAllocation<string>();
    const update = (slots: AllocationSlot<string>[], nowMs: number): number | undefined =>
      allocation.update({ estimateBps: 2_200_000, fixedBps: 0, slots, nowMs }).grants.get('a');
    const target = slot('a', { target: 'm' });
    expect(update([target], 0)).toBeGreaterThanOrEqual(1_650_000);
    const replaced = { ...target, active: { l: true, m: false, h: true }, wanted: 'h' as const };
    for (let nowMs = 200; nowMs <= 4_000; nowMs += 200) {
      expect(update([{ ...replaced, sendingBps: 1_500_000 }], nowMs)).toBeGreaterThanOrEqual(1_650_000);
    }
  });

  describe('with temporal layers', () => {
    const REDUCED = { l: [90_000, 60_000], m: [300_000, 200_000], h: [900_000, 600_000] };
    const layered = (over: Partial<AllocationSlot<string>> = {}) =>
      slot('a', { wanted: 'h', reducedBps: REDUCED, sendingBps: 1_500_000, ...over });
    /** Returns what is granted on links that become narrower, each with 10 s in which nothing more is sent. */
    function grantsAt(...links: number[]): number[] {
      const allocation = new BandwidthAllocation<string>();
      let sendingBps = 1_500_000;
      return links.map((estimateBps, i) => {
        const slots = [layered({ sendingBps })];
        const { grants } = allocation.update({ estimateBps, fixedBps: 0, slots, nowMs: i * 10_000 });
        sendingBps = Math.round(grants.get('a')! / 1_100) * 1_000;
        return sendingBps;
      });
    }

    test('leaves out one layer before it chooses a lower variant, and all of the lowest', () => {
      expect(grantsAt(1_100_000, 600_000, 350_000, 170_000, 100_000, 70_000, 10_000)).toEqual([
        900_000, 500_000, 300_000, 150_000, 90_000, 60_000, 60_000,
      ]);
    });

    test('raises to the best that fits of the next variant, and probes for it in steps', () => {
      const allocation = new BandwidthAllocation<string>();
      const low = layered({ wanted: 'l', fewer: 2, sendingBps: 60_000 });
      allocation.update({ estimateBps: 10_000, fixedBps: 0, slots: [layered()], nowMs: 0 });
      const update = (estimateBps: number, nowMs: number, slots = [low]) =>
        allocation.update({ estimateBps, fixedBps: 0, slots, nowMs });
      const asked = update(65_000, 10_000);
      expect(asked.grants.get('a')).toBe(66_000);
      expect(asked.probeBps).toBe(265_000);
      expect(update(400_000, 11_000).grants.get('a')).toBe(330_000);
      const middle = [layered({ wanted: 'm', fewer: 1, sendingBps: 300_000 })];
      expect(update(1_700_000, 12_000, middle).grants.get('a')).toBeGreaterThanOrEqual(1_650_000);
    });

    test.each([
      ['sooner when a probe since the last step has shown that it fits', 1_700_000, 1_400],
      ['in its time when that probe has shown less', 1_600_000, 2_000],
      ['in its time when only the probe before that step is known', 500_000, 2_000],
    ])('steps up again %s', (_when, provenBps, againAtMs) => {
      const allocation = new BandwidthAllocation<string>();
      allocation.update({ estimateBps: 10_000, fixedBps: 0, slots: [layered()], nowMs: -10_000 });
      const low = layered({ wanted: 'l', fewer: 2, sendingBps: 60_000 });
      const update = (estimateBps: number, proven: number, nowMs: number) => {
        const link = { estimateBps, provenBps: proven, fixedBps: 0 };
        return allocation.update({ ...link, slots: [low], nowMs }).grants.get('a')!;
      };
      expect(update(500_000, 500_000, 1_000)).toBe(330_000);
      let nowMs = 1_200;
      while (update(1_700_000, provenBps, nowMs) < 1_650_000) nowMs += 200;
      expect(nowMs).toBe(againAtMs);
    });

    test('skips a variant that costs more than a better one with fewer pictures per second', () => {
      const cheap = { ...REDUCED, h: [400_000, 200_000] };
      const allocation = new BandwidthAllocation<string>();
      const slots = [layered({ reducedBps: cheap })];
      const { grants } = allocation.update({ estimateBps: 600_000, fixedBps: 0, slots, nowMs: 0 });
      expect(grants.get('a')).toBe(440_001);
    });

    test('takes a lower variant when the layers end that were left out', () => {
      const allocation = new BandwidthAllocation<string>();
      const update = (slots: AllocationSlot<string>[], nowMs: number): number | undefined =>
        allocation.update({ estimateBps: 1_100_000, fixedBps: 0, slots, nowMs }).grants.get('a');
      expect(update([layered()], 0)).toBe(990_001);
      expect(update([slot('a', { wanted: 'h', sendingBps: 1_500_000 })], 200)).toBe(550_000);
    });

    test('keeps a target that is lowered for a while', () => {
      const allocation = new BandwidthAllocation<string>();
      const update = (target: 'm' | 'h', nowMs: number): number | undefined =>
        allocation
          .update({ estimateBps: 2_000_000, fixedBps: 0, slots: [layered({ target, sendingBps: 0 })], nowMs })
          .grants.get('a');
      update('h', 0);
      update('m', 200);
      expect(update('h', 400)).toBeGreaterThanOrEqual(1_650_000);
    });
  });

  test('takes a larger size only where its key picture comes through soon, and keeps it where it no longer does', () => {
    const allocation = new BandwidthAllocation<string>();
    const update = (estimateBps: number, over: Partial<AllocationSlot<string>>, nowMs: number) =>
      allocation.update({ estimateBps, fixedBps: 0, nowMs, slots: [slot('a', { target: 'm', ...over })] });
    const low = { wanted: 'l', sendingBps: 150_000, keyBps: { l: 100_000, m: 900_000, h: 2_000_000 } } as const;
    update(200_000, { sendingBps: 500_000 }, 0);
    const { grants, probeBps } = update(800_000, low, 10_000);
    expect(grants.get('a')).toBe(165_000);
    expect(probeBps).toBeCloseTo(900_000 * 1.15, 0);
    expect(update(950_000, low, 20_000).grants.get('a')).toBeGreaterThanOrEqual(550_000);
    const high = { ...low, wanted: 'm', sendingBps: 500_000 } as const;
    expect(update(600_000, high, 30_000).grants.get('a')).toBeGreaterThanOrEqual(550_000);
  });

  describe('with slots that start low', () => {
    const cautious = (key: string, sendingBps = 150_000): AllocationSlot<string> =>
      slot(key, { wanted: 'l', isBack: true, isCautious: true, sendingBps });
    const update = (
      allocation: BandwidthAllocation<string>,
      slots: AllocationSlot<string>[],
      link: { shownBps: number; openBps?: number; provenBps?: number; hasProbedLimit?: boolean; nowMs: number },
    ) => allocation.update({ estimateBps: 1_000_000, fixedBps: 0, slots, ...link });

    test('asks for a small probe first, and for larger ones while no limit of the link is found', () => {
      const allocation = new BandwidthAllocation<string>();
      const first = update(allocation, [cautious('a')], { shownBps: 250_000, openBps: 0, nowMs: 0 });
      expect(first).toMatchObject({ probeBps: 600_000, isOpen: true });
      expect(first.grants.get('a')).toBe(165_000);
      const second = update(allocation, [cautious('a')], { shownBps: 400_000, openBps: 400_000, nowMs: 200 });
      expect(second).toMatchObject({ probeBps: 1_600_000, isOpen: true });
    });

    test('raises all of them at once to what a probe has shown', () => {
      const allocation = new BandwidthAllocation<string>();
      const slots = [cautious('a'), cautious('b')];
      const { grants, probeBps } = update(allocation, slots, { shownBps: 4e6, openBps: 4e6, nowMs: 0 });
      expect(Math.min(grants.get('a')!, grants.get('b')!)).toBeGreaterThanOrEqual(1_650_000);
      expect(probeBps).toBeUndefined();
    });

    test('takes no more than is shown once a limit of the link is known, whatever the estimate', () => {
      const allocation = new BandwidthAllocation<string>();
      const { grants, probeBps, isOpen } = update(allocation, [cautious('a')], { shownBps: 300_000, nowMs: 0 });
      expect(grants.get('a')).toBe(165_000);
      expect(probeBps).toBe(600_000);
      expect(isOpen).toBeUndefined();
    });

    test.each([
      { found: 'nothing more', probe: {}, asked: 100_000 },
      { found: 'more', probe: { provenBps: 40_000 }, asked: 160_000 },
      { found: 'more, and a limit', probe: { provenBps: 40_000, hasProbedLimit: true }, asked: 100_000 },
    ])('asks for a probe of $asked bit/s on a link of 40 kbit/s after one that found $found', ({ probe, asked }) => {
      const allocation = new BandwidthAllocation<string>();
      const { probeBps } = update(allocation, [cautious('a', 30_000)], { shownBps: 40_000, nowMs: 0, ...probe });
      expect(probeBps).toBe(asked);
    });
  });

  test('forgets removed slots', () => {
    const allocation = new BandwidthAllocation<string>();
    allocation.update({ estimateBps: 300_000, fixedBps: 0, slots: [slot('a', { sendingBps: 1_500_000 })], nowMs: 0 });
    allocation.update({ estimateBps: 300_000, fixedBps: 0, slots: [], nowMs: 1 });
    const { grants } = allocation.update({ estimateBps: 3_000_000, fixedBps: 0, slots: [slot('a')], nowMs: 2 });
    expect(grants.get('a')).toBeGreaterThanOrEqual(1_650_000);
  });
});
