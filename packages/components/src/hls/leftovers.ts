import { appendFile, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMediaPlaylist } from './names.js';
import { PLAYLIST_END } from './playlist.js';

export interface LeftoversOptions {
  /** Root of all files. */
  resourcesPath: string;
  /** A stream of that room is being made, or uploaded, by this process. */
  isLive(roomId: string): boolean;
  /** Unix milliseconds. */
  now: number;
}

export interface Leftovers {
  /** Streams that were not to be kept, and are gone now. */
  removed: string[];
  /** Recordings that are over now. */
  ended: string[];
  /** Touched a moment ago: somebody else may be writing them. */
  fresh: number;
}

/** A stream grows every 2 s; one that has not for so long has no writer. */
export const FRESH_MS = 10_000;
/** Its upload may take longer. */
export const UPLOADING_MS = 600_000;

/**
 * What a process left that was killed: streams that nobody plays any more are removed, and recordings end where they end.
 * Several instances may share a directory, so what grows is left alone.
 */
export async function tidyLeftovers({ resourcesPath, isLive, now }: LeftoversOptions): Promise<Leftovers> {
  const found: Leftovers = { removed: [], ended: [], fresh: 0 };
  for (const roomId of await directories(join(resourcesPath, 'temporary_hls'))) {
    if (isLive(roomId)) continue;
    const path = join(resourcesPath, 'temporary_hls', roomId);
    if (await isYounger(path, now - UPLOADING_MS)) found.fresh += 1;
    else {
      await rm(path, { recursive: true, force: true });
      found.removed.push(roomId);
    }
  }
  for (const roomId of await directories(join(resourcesPath, 'recordings'))) {
    if (isLive(roomId)) continue;
    const playlist = await mediaPlaylistIn(join(resourcesPath, 'recordings', roomId));
    if (playlist === undefined || (await hasEnded(playlist))) continue;
    if (await isYounger(playlist, now - FRESH_MS)) found.fresh += 1;
    else {
      await appendFile(playlist, `${PLAYLIST_END}\n`);
      found.ended.push(roomId);
    }
  }

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

/** Also when there is no playlist to end. */
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
