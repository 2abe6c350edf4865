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

export function printMeasurements(title: string): void {
  if (series.size === 0) return;
  const lines = [...series].map(([name, { unit, bound, values }]) => {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
    const worst = sorted.at(-1) ?? 0;
    return `  ${name}: median ${middle.toFixed(0)}, worst ${worst.toFixed(0)} of ${values.length}, promised ${bound} ${unit}`;
  });
  process.stderr.write(`\nMeasured in "${title}":\n${lines.join('\n')}\n`);
  series.clear();
}
