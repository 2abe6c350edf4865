import { lstat, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Maximum number of steps per call, parents included. Others may remove an empty folder between two steps. */
const MAX_STEPS = 1_000;

/**
 * Creates a folder and its parents; succeeds if it already exists. Node's recursive `mkdir` never returns below a
 * folder that was deleted while open or mounted, such as a container volume (`ENOENT` for the child, `EEXIST` for the
 * parent, and so on), and blocks one of the four threads shared by all file access and DNS queries.
 *
 * @throws NodeJS.ErrnoException when the system refuses
 */
export async function makeFolder(path: string): Promise<void> {
  await make(path, { left: MAX_STEPS });
}

async function make(path: string, steps: { left: number }): Promise<void> {
  for (;;) {
    steps.left--;
    try {
      await mkdir(path);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (steps.left <= 0) throw error;
      const parent = dirname(path);
      if (code === 'ENOENT' && parent !== path) {
        await make(parent, steps);
        continue;
      }
      const found = await look(path);
      if (found === 'folder') return;
      // Otherwise something was in the way and has been removed since.
      if (code !== 'EEXIST' || found === 'other') throw error;
    }
  }
}

async function look(path: string): Promise<'folder' | 'other' | 'nothing'> {
  // A dangling link is in the way as well.
  const found = await stat(path).catch(() => lstat(path).catch(() => undefined));
  if (found === undefined) return 'nothing';
  return found.isDirectory() ? 'folder' : 'other';
}
