import { readFileSync } from 'node:fs';

/** Returns how long a process's main thread was ready to run while others had its core (`schedstat` of proc(5)). */
export function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1_000_000;
  } catch {
    // The kernel does not record it.
    return Number.NaN;
  }
}
