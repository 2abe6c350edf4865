// Reads this machine's processes, which may end at any time.
import { readdirSync, readFileSync } from 'node:fs';

/** Returns the descendants of a process (proc(5)). */
export function descendants(root: number): number[] {
  const parents = readdirSync('/proc').flatMap((name): [pid: number, parent: number][] => {
    if (!/^\d+$/.test(name)) return [];
    const stat = ofLiving(`/proc/${name}/stat`);
    return [[Number(name), Number(stat.slice(stat.lastIndexOf(')') + 1).split(' ')[2])]];
  });
  const found = [root];
  for (const pid of found) found.push(...parents.flatMap(([child, parent]) => (parent === pid ? [child] : [])));
  return found.slice(1);
}

/** Returns the program that a process runs; empty if it has ended. */
export function commandOf(pid: number): string {
  return ofLiving(`/proc/${pid}/cmdline`);
}

function ofLiving(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
