import { appendFile, mkdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamFiles } from './live-stream.js';
import { MEDIA_NAME } from './names.js';
import { PLAYLIST_END } from './playlist.js';

/**
 * The directory of one stream. Deeds happen in order; after the first failure nothing more is written, so that what is
 * there stays whole: the file that did not fit is taken back, and the playlist ends with the one before.
 */
export class StreamDirectory implements StreamFiles {
  readonly #onFailure: (error: unknown) => void;
  #tail: Promise<void>;
  #failed = false;
  #begun = false;

  /** Begins by wiping what a former stream left there, once `after` has settled. */
  constructor(
    readonly path: string,
    onFailure: (error: unknown) => void,
    after: Promise<void> = Promise.resolve(),
  ) {
    this.#onFailure = onFailure;
    this.#tail = after;
    this.#enqueue(async () => {
      await rm(path, { recursive: true, force: true });
      await mkdir(path, { recursive: true });
    });
  }

  write(name: string, data: Buffer): void {
    const path = join(this.path, name);
    // Playlists are replaced while they are being read.
    const first = name.endsWith('.m3u8') ? `${path}.next` : path;
    this.#enqueue(
      async () => {
        // A stream may wait long for its first track. By then another node on this disk may have tidied away what was empty.
        if (!this.#begun) await mkdir(this.path, { recursive: true });
        this.#begun = true;
        await writeFile(first, data);
        if (first !== path) await rename(first, path);
      },
      () => rm(first, { force: true }),
    );
  }

  append(name: string, data: Buffer): void {
    this.#enqueue(() => append(join(this.path, name), data));
  }

  remove(name: string): void {
    this.#enqueue(() => rm(join(this.path, name), { force: true }));
  }

  /** Everything asked for so far has been done or has failed. Never rejects. */
  idle(): Promise<void> {
    return this.#tail;
  }

  #enqueue(deed: () => Promise<void>, undo: () => Promise<void> = () => Promise.resolve()): void {
    this.#tail = this.#tail.then(async () => {
      if (this.#failed) return;
      try {
        await deed();
      } catch (error) {
        this.#failed = true;
        await undo().catch(() => undefined);
        await this.#endPlaylist().catch(() => undefined);
        this.#onFailure(error);
      }
    });
  }

  /** A stream that cannot go on is over for those who play it from here. */
  async #endPlaylist(): Promise<void> {
    const path = join(this.path, MEDIA_NAME);
    await stat(path);
    await append(path, Buffer.from(`${PLAYLIST_END}\n`));
  }
}

/** All of it or nothing. */
async function append(path: string, data: Buffer): Promise<void> {
  const size = await stat(path).then((found) => found.size);
  try {
    await appendFile(path, data);
  } catch (error) {
    await truncate(path, size);
    throw error;
  }
}
