import { describe, expect, test } from '@jest/globals';
import { RepairBudget } from './repair-budget.js';

/** Spends packets of 1,000 bytes as long as any are left, once per tick. Returns the bits per second. */
function spendAll(budget: RepairBudget, fromMs: number, toMs: number): number {
  let packets = 0;
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 20) {
    budget.tick(nowMs);
    for (; budget.isLeftFor('video', false); packets += 1) budget.spend(1_000);
  }
  return (packets * 8_000_000) / (toMs - fromMs);
}

describe('the retransmissions to one client', () => {
  test('are limited to 100 in a tick while nothing has been measured', () => {
    const budget = new RepairBudget();
    expect(spendAll(budget, 0, 20)).toBe(100 * 1_000 * 8 * 50);
    expect(budget.isLeftFor('video', false)).toBe(false);
    budget.tick(20);
    expect(budget.isLeftFor('video', false)).toBe(true);
  });

  test.each([
    ['what media leaves of the estimate', 1_000_000, 200_000, 800_000],
    ['a quarter of the estimate when media leaves less', 300_000, 290_000, 75_000],
    ['a quarter of the estimate when media exceeds it', 300_000, 2_000_000, 75_000],
  ])('take %s', (_what, estimateBps, sendingBps, bps) => {
    const budget = new RepairBudget();
    budget.measured(estimateBps, sendingBps);
    spendAll(budget, 0, 1_000);
    const spent = spendAll(budget, 1_000, 11_000);
    expect(Math.abs(spent / bps - 1)).toBeLessThan(0.05);
  });

  test('are saved for half a second', () => {
    const budget = new RepairBudget();
    budget.measured(800_000, 0);
    spendAll(budget, 0, 1_000);
    const savedBps = spendAll(budget, 60_000, 60_020);
    expect((savedBps * 0.02) / 8).toBe(50_000);
  });

  test('of sound follow whatever those of video have taken', () => {
    const budget = new RepairBudget();
    budget.measured(300_000, 300_000);
    spendAll(budget, 0, 1_000);
    expect([budget.isLeftFor('video', false), budget.isLeftFor('audio', false)]).toEqual([false, true]);
  });

  test('of sound leave no debt that pictures would have to pay', () => {
    const budget = new RepairBudget();
    budget.measured(100_000, 100_000);
    for (let nowMs = 0; nowMs < 60_000; nowMs += 20) {
      budget.tick(nowMs);
      for (let i = 0; i < 10; i += 1) budget.spend(100);
    }
    budget.measured(1_000_000, 200_000);
    budget.tick(60_100);
    expect(budget.isLeftFor('video', false)).toBe(true);
  });

  test('of pictures before a key picture leave half of what is saved to those after it', () => {
    const budget = new RepairBudget();
    expect(budget.isLeftFor('video', true)).toBe(true);
    budget.measured(800_000, 0);
    budget.tick(10_000);
    let bytes = 0;
    for (; budget.isLeftFor('video', true); bytes += 1_000) budget.spend(1_000);
    expect(bytes).toBe(25_000);
    for (; budget.isLeftFor('video', false); bytes += 1_000) budget.spend(1_000);
    expect(bytes).toBe(50_000);
  });

  test('may follow at once when more has been measured', () => {
    const budget = new RepairBudget();
    budget.measured(50_000, 50_000);
    spendAll(budget, 0, 1_000);
    budget.measured(8_000_000, 0);
    budget.tick(1_020);
    expect(budget.isLeftFor('video', false)).toBe(true);
  });
});
