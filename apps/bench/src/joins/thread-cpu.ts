import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { statMicros } from '../sfu/process.js';

/** CPU time of a Node.js process in microseconds: its main thread, its workers, and V8's and libuv's threads. */
export interface ThreadCpu {
  main: number;
  workers: number;
  helpers: number;
}

/** Reads the CPU time. `names` is the folder that `thread-name.ts` fills. */
export function threadCpu(pid: number, names: string): ThreadCpu {
  const workers = new Set(readdirSync(names));
  const cpu: ThreadCpu = { main: 0, workers: 0, helpers: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const micros = runningMicros(join(`/proc/${pid}/task`, thread));
    if (thread === String(pid)) cpu.main += micros;
    else if (workers.has(thread)) cpu.workers += micros;
    else cpu.helpers += micros;
  }
  return cpu;
}

/**
 * Precise to the nanosecond if the kernel records that (`schedstat` of proc(5)), otherwise to its ticks of 10 ms. A
 * thread that has just ended counts as nothing.
 */
function runningMicros(task: string): number {
  try {
    const schedstat = join(task, 'schedstat');
    return existsSync(schedstat)
      ? Number(readFileSync(schedstat, 'utf8').split(' ')[0]) / 1_000
      : statMicros(join(task, 'stat'));
  } catch {
    return 0;
  }
}

export function difference(to: ThreadCpu, from: ThreadCpu): ThreadCpu {
  return { main: to.main - from.main, workers: to.workers - from.workers, helpers: to.helpers - from.helpers };
}

export function sum(a: ThreadCpu, b: ThreadCpu): ThreadCpu {
  return { main: a.main + b.main, workers: a.workers + b.workers, helpers: a.helpers + b.helpers };
}

export function scaled({ main, workers, helpers }: ThreadCpu, by: number): ThreadCpu {
  return { main: main * by, workers: workers * by, helpers: helpers * by };
}
