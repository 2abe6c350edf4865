import { describe, expect, test } from '@jest/globals';
import { BusyWait } from './busy-wait.js';

function world(longestMs = 0.2) {
  const turns: (() => void)[] = [];
  const clock = { time: 5, now: () => clock.time };
  const wait = new BusyWait(clock, longestMs, (run) => turns.push(run));
  /** Runs turns of 10 us each until none are left, and returns their number. */
  const run = (): number => {
    let count = 0;
    for (let next = turns.shift(); next !== undefined; next = turns.shift()) {
      clock.time += 0.01;
      count += 1;
      next();
    }
    return count;
  };
  return { wait, turns, clock, run };
}

describe('busy waiting', () => {
  test('waits until the answer arrives', () => {
    const { wait, turns, run } = world();
    for (let i = 0; i < 100; i++) {
      wait.asked();
      expect(turns).toHaveLength(1);
      wait.received();
      expect(run()).toBe(1);
    }
  });

  test('waits no longer than its limit, and once for several queries', () => {
    const { wait, turns, run } = world();
    for (let i = 0; i < 5; i++) wait.asked();
    expect(turns).toHaveLength(1);
    expect(run()).toBeGreaterThanOrEqual(19);
    expect(run()).toBe(0);
  });

  test('gives up step by step where answers take longer, and resumes when they do not', () => {
    const { wait, turns, run } = world();
    let tried = 0;
    for (let i = 0; i < 1_000; i++) {
      wait.asked();
      if (run() > 0) tried += 1;
      wait.received();
    }
    expect(tried).toBeLessThan(25);
    while (turns.length === 0) wait.asked();
    wait.received();
    run();
    wait.asked();
    expect(turns).toHaveLength(1);
  });

  test('can be switched off, and ends even with a clock that stands still', () => {
    const off = world(0);
    off.wait.asked();
    expect(off.turns).toEqual([]);
    const { wait, turns } = world();
    wait.asked();
    let count = 0;
    for (let next = turns.shift(); next !== undefined; next = turns.shift(), count += 1) next();
    expect(count).toBeLessThan(1_100);
  });
});
