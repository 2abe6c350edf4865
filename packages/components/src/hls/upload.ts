import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { openStore, type S3Target } from '../s3/object-store.js';

const PUT_TIMEOUT_MS = 10_000;
const UPLOADED = /\.(m4s|m3u8|mp4)$/;

/**
 * Puts the files of a stream under `<roomId>/`, one after another; stops at the first that fails.
 * @throws ComponentError `UPLOAD_FAILED`
 */
export async function uploadStream(directory: string, roomId: string, target: S3Target): Promise<number> {
  const names = (await readdir(directory)).filter((name) => UPLOADED.test(name)).toSorted();
  const store = await openStore(target, { putTimeoutMs: PUT_TIMEOUT_MS });
  try {
    for (const name of names) await store.put(`${roomId}/${name}`, join(directory, name));
  } finally {
    store.close();
  }

  return names.length;
}
