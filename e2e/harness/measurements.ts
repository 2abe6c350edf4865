// Figures that the product promises. Scenarios record and assert them; the end of each file prints them.
import { spawnSync } from 'node:child_process';
import { expect } from '@jest/globals';

interface Series {
  readonly unit: string;
  readonly bound: number;
  readonly values: number[];
}

const series = new Map<string, Series>();

/** Records a measured value and fails the test if it exceeds the promised bound, in ms without a unit. */
export function promise(name: string, value: number, limit: number | Omit<Series, 'values'>): void {
  const { bound, unit } = typeof limit === 'number' ? { bound: limit, unit: 'ms' } : limit;
  const known = series.get(name) ?? { unit, bound, values: [] };
  known.values.push(value);
  series.set(name, known);
  expect({ name, value, kept: value <= bound }).toEqual({ name, value, kept: true });
}

/** Returns the median, which a single delay on a busy machine does not change. NaN without values. */
export function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/**
 * Returns how much longer a Node program takes than one that does nothing, by the best of five runs each, because the
 * speed of a shared machine varies.
 */
export async function timesAnEmptyProgram(run: () => Promise<{ code: number | null; ms: number }>): Promise<number> {
  const [times, empty]: [number[], number[]] = [[], []];
  for (let i = 0; i < 5; i++) {
    const { code, ms } = await run();
    expect(code).toBe(0);
    times.push(ms);
    const from = performance.now();
    spawnSync(process.execPath, ['-e', '0']);
    empty.push(performance.now() - from);
  }
  return Math.min(...times) / Math.min(...empty);
}

export function printMeasurements(title: string): void {
  if (series.size === 0) return;
  const lines = [...series].map(([name, { unit, bound, values }]) => {
    const [median, worst] = [middle(values), Math.max(...values)].map((value) => Number(value.toPrecision(3)));
    return `  ${name}: median ${median}, worst ${worst} of ${values.length}, promised ${bound} ${unit}`;
  });
  process.stderr.write(`\nMeasured in "${title}":\n${lines.join('\n')}\n`);
  series.clear();
}
