/** Common output of all benchmarks: where a table comes from, and whether a target was reached. */
import { spawnSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';

const loadAtStart = loadavg()[0] ?? 0;

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' });

  return status === 0 ? stdout.trim() : undefined;
}

/** Returns one line with the date, the commit and the machine, printed with every table. */
export function provenance(): string {
  const commit = git('rev-parse', '--short', 'HEAD') ?? 'unknown';
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ' with uncommitted changes';
  const date = new Date().toISOString().slice(0, 16).replace('T', ' ');

  return `${date} UTC, commit ${commit}${changed}, Node ${process.version}, ${cpus().length} cores, load ${loadAtStart.toFixed(1)} at the start`;
}

/** Prints a table under its title and provenance. */
export function printTable(title: string, rows: readonly object[]): void {
  console.log(`\n${title}\n${provenance()}`);
  console.table(rows);
}

export interface Target {
  must: number;
  aim: number;
  /** `less` by default: smaller values are better. */
  better?: 'less' | 'more';
  unit?: string;
}

/** Returns the verdict in words. A missed target or a value that is not a number makes the program exit with 1. */
export function judge(value: number, { must, aim, better = 'less' }: Target): string {
  const reaches = (bar: number): boolean => (better === 'less' ? value <= bar : value >= bar);
  if (reaches(aim)) return 'aim reached';
  if (reaches(must)) return 'must reached';
  process.exitCode = 1;

  return 'MISSED';
}

/** Prints a measured value with its target. */
export function printVerdict(what: string, value: number, target: Target): void {
  const { unit = '' } = target;
  const sign = target.better === 'more' ? '>=' : '<=';
  console.log(
    `${what}: ${Number(value.toPrecision(3))}${unit} (must ${sign} ${target.must}${unit}, aim ${sign} ${target.aim}${unit}): ${judge(value, target)}`,
  );
}
