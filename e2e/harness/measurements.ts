// Numbers that the product promises: collected by the scenarios, asserted by them, printed at the end of each file.
import { spawnSync } from 'node:child_process';
import { expect } from '@jest/globals';

interface Series {
  readonly unit: string;
  readonly bound: number;
  readonly values: number[];
}

const series = new Map<string, Series>();

/** Notes a measured value and fails the test when it is above the promised bound. */
export function promise(name: string, value: number, bound: number, unit = 'ms'): void {
  const known = series.get(name) ?? { unit, bound, values: [] };
  known.values.push(value);
  series.set(name, known);
  expect({ name, value, kept: value <= bound }).toEqual({ name, value, kept: true });
}

/** Returns the median: what a single delay of a busy machine does not change. NaN without values. */
export function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/**
 * Returns how much longer a program in Node takes than one that does nothing, the best of five of each: the machine is shared, and
 * what it can do differs between hours.
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
