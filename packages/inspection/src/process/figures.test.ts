import { afterEach, describe, expect, test } from '@jest/globals';
import { Meter, ProcessFigures } from './figures.js';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

/** Blocks and uses the CPU for at least half of that time, however little of it a busy machine grants. */
function block(ms: number): void {
  const until = performance.now() + ms;
  const { user } = process.cpuUsage();
  while (performance.now() < until || process.cpuUsage().user - user < ms * 500);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('the meter', () => {
  test('measures event loop delay and CPU usage, and starts over at each reading', async () => {
    const meter = new Meter(5);
    open.push(meter);
    await pause(30);
    meter.read();
    // Immediately: a delay must not need an earlier sample in its window.
    block(120);
    await pause(30);
    const { ms, loop, cpu } = meter.read();
    expect(ms).toBeGreaterThan(140);
    expect(loop.maxMs).toBeGreaterThan(50);
    expect(loop.p50Ms).toBeLessThanOrEqual(loop.p99Ms);
    expect(loop.p99Ms).toBeLessThanOrEqual(loop.maxMs);
    expect(loop.utilization * ms).toBeGreaterThan(100);
    expect((cpu.user + cpu.system) * ms).toBeGreaterThan(50);
    expect(meter.look().ms).toBeLessThan(ms);
  });
});

describe('the figures of the process', () => {
  test('reports a delay even right after it happened', async () => {
    const figures = new ProcessFigures(400);
    open.push(figures);
    await pause(600);
    block(300);
    figures.lookCloser();
    let worst = 0;
    // A reading covers the last window, so each window must be seen, even on a busy machine.
    for (let i = 0; i < 100 && worst <= 100; i++) {
      await pause(20);
      worst = Math.max(worst, figures.reading.loop.maxMs);
    }
    expect(worst).toBeGreaterThan(100);
  });

  test('returns figures immediately, and counts garbage collections once requested', async () => {
    const figures = new ProcessFigures();
    open.push(figures);
    expect(figures.reading.cpu.user).toBeGreaterThanOrEqual(0);
    expect(figures.gc).toEqual({ perS: 0, share: 0, maxPauseMs: 0, total: 0 });
    figures.lookCloser();
    const garbage: unknown[] = [];
    for (let round = 0; round < 2_000 && figures.gc.total === 0; round++) {
      for (let i = 0; i < 2_000; i++) garbage[i] = { i, text: `text ${i}` };
      await pause(0);
    }
    expect(figures.gc.total).toBeGreaterThan(0);
    expect(figures.gc.perS).toBeGreaterThan(0);
    expect(figures.gc.maxPauseMs).toBeGreaterThan(0);
  });
});
