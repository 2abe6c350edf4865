// Reads this machine's processes, which may end at any time, and runs programs.
import { fileURLToPath } from 'node:url';
import { join, dirname } from 'node:path';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Path of the repository. Jest runs from its root, and other paths start there. */
export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

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

/** Creates or replaces a self-signed certificate for localhost in that folder. Needs openssl. */
export function makeCertificate(folder: string): { key: string; cert: string } {
  const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost ' +
    `-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout ${files.key} -out ${files.cert}`;
  execFileSync('openssl', request.split(' '), { stdio: 'pipe' });

  return files;
}
