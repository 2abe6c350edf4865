// Numbers that the product promises: collected by the scenarios, asserted by them, printed at the end of each file.
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

export function printMeasurements(title: string): void {
  if (series.size === 0) return;
  const lines = [...series].map(([name, { unit, bound, values }]) => {
    const [median, worst] = [middle(values), Math.max(...values)].map((value) => value.toFixed(0));
    return `  ${name}: median ${median}, worst ${worst} of ${values.length}, promised ${bound} ${unit}`;
  });
  process.stderr.write(`\nMeasured in "${title}":\n${lines.join('\n')}\n`);
  series.clear();
}
