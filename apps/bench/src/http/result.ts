export interface Result {
  what: string;
  /** Values by name, for `--json`. */
  values: Readonly<Record<string, number>>;
  measured: string;
  /** Conditions that must hold, in words. */
  target: string;
  met: boolean;
}

const quantileOf = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;

export interface Latencies {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** Summarizes latencies in milliseconds. */
export function summary(latencies: Float64Array | readonly number[]): Latencies {
  const sorted = Float64Array.from(latencies).toSorted();
  const values = [...sorted];
  return {
    count: values.length,
    p50: quantileOf(values, 0.5),
    p99: quantileOf(values, 0.99),
    max: values.at(-1) ?? Number.NaN,
  };
}

export function latencyText({ count, p50, p99, max }: Latencies): string {
  return `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, max ${max.toFixed(1)} ms of ${count}`;
}

export function table(results: readonly Result[]): string {
  const rows = results.map(({ what, measured, target, met }) => [what, measured, target, met ? 'yes' : 'NO']);
  const all = [['what', 'measured', 'target', 'met'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '));
  lines.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('  '));
  return lines.join('\n');
}
