import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Others may remove an empty folder between two steps. */
const ATTEMPTS = 5;

/**
 * Creates a folder with its parents; succeeds if it is there. The recursive `mkdir` of Node never ends below a folder that was
 * deleted while it is open or mounted, such as the volume of a container (`ENOENT` for the child, `EEXIST` for the parent, and so
 * on), and holds one of the four threads that all files and DNS queries share.
 *
 * @throws NodeJS.ErrnoException when the system refuses it
 */
export async function makeFolder(path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await mkdir(path);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const parent = dirname(path);
      if (code === 'ENOENT' && parent !== path) await makeFolder(parent);
      else if (await isFolder(path)) return;
      else if (code !== 'EEXIST') throw error;
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
