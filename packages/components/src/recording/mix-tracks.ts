/** Brings the files of a recording together for its mix. */
import { copyFile, link, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { ComponentError } from '../errors.js';
import type { ObjectStore } from '../s3/object-store.js';
import { MIX_FILE } from './part-mix.js';
import { MAX_REPORT_BYTES, readReport, REPORT_FILE } from './report.js';

/** Files beyond that are no recording of ours. */
const MAX_FILES = 10_000;
/** Sizes asked for at once. */
const MAX_QUESTIONS = 8;

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
  /** Maximum size of the whole recording. */
  bytes: number;
  signal: AbortSignal;
  /** Called as bytes arrive, with their share of all, 0..1. */
  onProgress(share: number): void;
}

/**
 * Fetches the report and the tracks that it lists from a bucket into the directory `to`.
 * @throws ComponentError `DOWNLOAD_FAILED`, and `BAD_RECORDING` if the report is none or names a path
 */
export async function fetchTracks(store: ObjectStore, to: string, options: FetchOptions): Promise<void> {
  const { keyOf, bytes, signal, onProgress } = options;
  const get = (file: string, maxBytes: number, onBytes?: (received: number) => void): Promise<number> =>
    store.get(keyOf(file), join(to, file), { maxBytes, signal, ...(onBytes === undefined ? {} : { onBytes }) });
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
  }
  const all = await sizeOfAll(store, files.map(keyOf), signal);
  let fetched = 0;
  for (const [i, file] of files.entries()) {
    const size = await get(file, bytes - arrived, (received) => {
      if (all !== undefined) onProgress(Math.min(1, (fetched + received) / all));
    });
    arrived += size;
    fetched += size;
    if (all === undefined) onProgress((i + 1) / files.length);
  }
}

/** Returns the sum of the sizes of objects; undefined if the store does not report them. */
async function sizeOfAll(
  store: ObjectStore,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<number | undefined> {
  const turn = pLimit(MAX_QUESTIONS);
  const sizes = await Promise.all(keys.map((key) => turn(() => (signal.aborted ? undefined : store.sizeOf(key)))));
  let sum = 0;
  for (const size of sizes) {
    if (typeof size !== 'number') return undefined;
    sum += size;
  }

  return sum > 0 ? sum : undefined;
}
