/** Space on the disk that mixes share with recordings in progress, which must not run out of it. */
import { statfs } from 'node:fs/promises';
import { ComponentError } from '../errors.js';

const MIB = 1024 * 1024;
/** Mixes leave this much to recordings in progress. */
export const RESERVE_BYTES = 1024 * MIB;

/** Returns the bytes that can still be written to the disk of a directory; infinite if the system does not say. */
export async function freeBytes(directory: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(directory);

  // Some network file systems do not know their size.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** Returns why a mix that still writes so many bytes does not fit, `MIX_FAILED`; undefined if it does. */
export function shortage(free: number, bytes: number): ComponentError | undefined {
  const needed = bytes + RESERVE_BYTES;
  if (free >= needed) return undefined;
  const rule = `a mix needs ${Math.ceil(needed / MIB)} MiB and leaves ${RESERVE_BYTES / MIB} of them to recordings`;

  return new ComponentError('MIX_FAILED', `the disk has ${Math.floor(free / MIB)} MiB free: ${rule} in progress`);
}
