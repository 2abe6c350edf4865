import { appendFile, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMediaPlaylist } from './names.js';
import { PLAYLIST_END } from './playlist.js';

export interface LeftoversOptions {
  /** Root of all files. */
  resourcesPath: string;
  /** Returns true while this process makes or uploads a stream in that directory. */
  isLive(path: string): boolean;
  /** Unix milliseconds. */
  now: number;
  /** Called with the name of each entry that cannot be cleaned up; the others still are. */
  onFailure(name: string, error: unknown): void;
}

export interface Leftovers {
  /** Directories of temporary streams removed. */
  removed: string[];
  /** Recordings completed. */
  ended: string[];
  /** Entries changed recently, which another process may still be writing. */
  fresh: number;
}

/** A stream grows every 2 s, so one unchanged for this long has no writer. */
export const FRESH_MS = 10_000;
/** Time allowed for its upload. */
export const UPLOADING_MS = 600_000;

/**
 * Cleans up after a killed process: removes temporary streams and completes the playlists of recordings. Several nodes
 * may share a directory, so entries that are changing are left alone.
 */
export async function tidyLeftovers({ resourcesPath, isLive, now, onFailure }: LeftoversOptions): Promise<Leftovers> {
  const found: Leftovers = { removed: [], ended: [], fresh: 0 };
  const eachIn = async (kind: string, tidy: (name: string, path: string) => Promise<void>): Promise<void> => {
    for (const name of await directories(join(resourcesPath, kind))) {
      const path = join(resourcesPath, kind, name);
      if (isLive(path)) continue;
      await tidy(name, path).catch((error: unknown) => onFailure(name, error));
    }
  };
  await eachIn('temporary_hls', async (name, path) => {
    if (await isYounger(path, now - UPLOADING_MS)) found.fresh += 1;
    else {
      await rm(path, { recursive: true, force: true });
      found.removed.push(name);
    }
  });
  await eachIn('recordings', async (name, path) => {
    const playlist = await mediaPlaylistIn(path);
    if (playlist === undefined || (await hasEnded(playlist))) return;
    if (await isYounger(playlist, now - FRESH_MS)) found.fresh += 1;
    else {
      await appendFile(playlist, `${PLAYLIST_END}\n`);
      found.ended.push(name);
    }
  });

  return found;
}

async function directories(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);

  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function mediaPlaylistIn(directory: string): Promise<string | undefined> {
  const name = (await readdir(directory).catch(() => [])).find(isMediaPlaylist);

  return name === undefined ? undefined : join(directory, name);
}

async function isYounger(path: string, thanMs: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);

  return found !== undefined && found.mtimeMs > thanMs;
}

/** Also returns true without a playlist. */
async function hasEnded(playlist: string): Promise<boolean> {
  const handle = await open(playlist).catch(() => undefined);
  if (handle === undefined) return true;
  try {
    const { size } = await handle.stat();
    const tail = Buffer.alloc(Math.min(size, PLAYLIST_END.length + 1));
    await handle.read(tail, 0, tail.length, size - tail.length);

    return tail.toString().trimEnd() === PLAYLIST_END;
  } finally {
    await handle.close();
  }
}
