import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '@bloom/log';
import { type Clock, sleep } from '@bloom/time';
import { makeFolder } from '../make-folder.js';

export const GARBAGE_INTERVAL_MS = 600_000;
/** A part unchanged for this long is obsolete. */
export const OBSOLETE_MS = 3_600_000;

export interface GarbageOptions {
  /** `raw_recordings` */
  directory: string;
  /** Returns the ids of the rooms alive on this node. */
  liveRooms(): Promise<ReadonlySet<string>>;
  isPending(partDirectory: string): boolean | Promise<boolean>;
  /** Called once per pass. */
  tidy?(): Promise<void>;
  log: Log;
  clock: Clock;
}

/**
 * Removes the obsolete raw recordings of rooms that have ended. Entries that vanish during the pass or cannot be read
 * are left for the next one.
 */
export async function collectGarbage(options: GarbageOptions): Promise<void> {
  const { directory, liveRooms, log, tidy } = options;
  await tidy?.();
  const live = await liveRooms();
  for (const roomId of await directories(directory)) {
    if (live.has(roomId)) continue;
    const room = join(directory, roomId);
    for (const name of await directories(room)) {
      const part = join(room, name);
      if (!(await isObsolete(part, options))) continue;
      try {
        await rm(part, { recursive: true, force: true });
        log.info('recording.removed', { roomId, part: name });
      } catch (error) {
        log.warn('recording.remove_failed', { roomId, part: name, error });
      }
    }
    // Fails unless the directory is empty.
    await rmdir(room).catch(() => undefined);
  }
}

/** Creates the directory and collects garbage every ten minutes until the returned function is called. */
export function startGarbageCollection(options: GarbageOptions): () => void {
  const { directory, log, clock } = options;
  const ending = new AbortController();
  const run = async (): Promise<void> => {
    await makeFolder(directory).catch((error: unknown) => {
      log.warn('recording.directory_failed', { directory, error });
    });
    for (;;) {
      await sleep(GARBAGE_INTERVAL_MS, { clock, signal: ending.signal });
      if (ending.signal.aborted) return;
      await collectGarbage(options).catch((error: unknown) => log.warn('recording.garbage_failed', { error }));
    }
  };
  void run();

  return () => ending.abort();
}

async function isObsolete(part: string, { isPending, clock }: GarbageOptions): Promise<boolean> {
  if (await isPending(part)) return false;
  const files = await readdir(part).catch(() => undefined);
  if (files === undefined) return false;
  // An empty directory counts with its own time: a recording that has just begun has no file yet.
  const times = await Promise.all(
    (files.length === 0 ? ['.'] : files).map((file) =>
      stat(join(part, file)).then(
        ({ mtimeMs }) => mtimeMs,
        () => Number.POSITIVE_INFINITY,
      ),
    ),
  );

  return clock.wall() - Math.max(...times) > OBSOLETE_MS;
}

/** Returns the names of a directory's subdirectories; none when it cannot be read. */
export async function directories(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);

  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
