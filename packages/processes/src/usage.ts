import { readFileSync } from 'node:fs';

/** What a process has used so far. */
export interface ProcessUsage {
  cpuSeconds: number;
  residentMib: number;
  peakMib: number;
}

/** Ticks of `/proc/<pid>/stat` per second: USER_HZ, 100 on every architecture that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** Returns what a process has used; undefined without `/proc` or after the process has ended. */
export function usageOf(pid: number): ProcessUsage | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    // The program's name, in parentheses, may contain anything.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    const mebibytes = (field: string): number =>
      Math.round(Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024);

    // The kernel has already freed the memory of a process that is ending.
    if (!status.includes('VmRSS')) return undefined;

    return {
      cpuSeconds: (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND,
      residentMib: mebibytes('VmRSS'),
      peakMib: mebibytes('VmHWM'),
    };
  } catch {
    return undefined;
  }
}
