import { lstat, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Steps of one call, all parents included. Others may remove an empty folder between two of them. */
const MAX_STEPS = 1_000;

/**
 * Creates a folder with its parents; succeeds if it is there. The recursive `mkdir` of Node never ends below a folder that was
 * deleted while it is open or mounted, such as the volume of a container (`ENOENT` for the child, `EEXIST` for the parent, and so
 * on), and holds one of the four threads that all files and DNS queries share.
 *
 * @throws NodeJS.ErrnoException when the system refuses it
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
      // Otherwise it was in the way and has been removed since.
      if (code !== 'EEXIST' || found === 'other') throw error;
    }
  }
}

async function look(path: string): Promise<'folder' | 'other' | 'nothing'> {
  // A link that leads nowhere is in the way as well.
  const found = await stat(path).catch(() => lstat(path).catch(() => undefined));
  if (found === undefined) return 'nothing';
  return found.isDirectory() ? 'folder' : 'other';
}
