/** Brings the files of a recording together for its mix. */
import { copyFile, link, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ComponentError } from '../errors.js';
import type { ObjectStore } from '../s3/object-store.js';
import { MIX_FILE } from './part-mix.js';
import { MAX_REPORT_BYTES, readReport, REPORT_FILE } from './report.js';

/** Files beyond that are no recording of ours. */
const MAX_FILES = 10_000;

/**
 * Links the files of a part into the directory `to`, so that they stay even if an upload removes them. Files that
 * vanish meanwhile are left out.
 */
export async function linkTracks(part: string, to: string): Promise<void> {
  for (const name of await readdir(part).catch(() => [])) {
    if (name.startsWith('.') || name === MIX_FILE) continue;
    const path = join(part, name);
    // Links may lead anywhere.
    if ((await lstat(path).catch(() => undefined))?.isFile() !== true) continue;
    await link(path, join(to, name)).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return;
      // Some file systems have no links.
      await copyFile(path, join(to, name));
    });
  }
}

export interface FetchOptions {
  keyOf(file: string): string;
  /** Size of the whole recording. */
  bytes: number;
  signal: AbortSignal;
  /** Called after each file with the share of the bytes that have arrived, 0..1. */
  onProgress(share: number): void;
}

/**
 * Fetches the report and the tracks that it lists from a bucket into the directory `to`.
 * @throws ComponentError `DOWNLOAD_FAILED`, and `BAD_RECORDING` if the report is none or names a path
 */
export async function fetchTracks(store: ObjectStore, to: string, options: FetchOptions): Promise<void> {
  const { keyOf, bytes, signal, onProgress } = options;
  const get = (file: string, maxBytes: number): Promise<number> =>
    store.get(keyOf(file), join(to, file), { maxBytes, signal });
  let arrived = await get(REPORT_FILE, Math.min(bytes, MAX_REPORT_BYTES));
  const report = await readReport(to);
  if (report === undefined) throw new ComponentError('BAD_RECORDING', `${REPORT_FILE} in the bucket is not a report`);
  const files = Object.keys(report.tracks);
  if (files.length > MAX_FILES) {
    throw new ComponentError('BAD_RECORDING', `${REPORT_FILE} lists ${files.length} tracks, more than ${MAX_FILES}`);
  }
  for (const file of files) {
    const isName = /^[^./\\\0][^/\\\0]*$/.test(file) && file !== REPORT_FILE && file !== MIX_FILE;
    if (!isName) throw new ComponentError('BAD_RECORDING', `${JSON.stringify(file)} is not the name of a track`);
    arrived += await get(file, bytes - arrived);
    onProgress(Math.min(1, arrived / Math.max(1, bytes)));
  }
}
