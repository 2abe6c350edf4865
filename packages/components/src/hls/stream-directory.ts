import { appendFile, mkdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamFiles } from './live-stream.js';
import { PLAYLIST_END } from './playlist.js';

export interface StreamDirectoryOptions {
  path: string;
  /** Name of the playlist that ends when the stream cannot be written any more. */
  playlist: string;
  onFailure(error: unknown): void;
  /** What has to settle before anything is done here. */
  after?: Promise<void>;
  /**
   * Makes way for the directory of a stream that is kept, when the first file of it is written. Without it the directory is
   * emptied at once: what a former stream left there goes.
   */
  makeWay?(): Promise<void>;
}

/**
 * The directory of one stream. Changes happen in order; after the first failure nothing more is written, so that what is
 * there stays whole: the file that did not fit is taken back, and the playlist ends with the one before.
 */
export class StreamDirectory implements StreamFiles {
  readonly path: string;
  readonly #options: StreamDirectoryOptions;
  #tail: Promise<void>;
  #failed = false;
  /** The path holds this stream, not a former one. */
  #taken: boolean;
  #begun = false;

  constructor(options: StreamDirectoryOptions) {
    const { path, after = Promise.resolve(), makeWay } = options;
    this.#options = options;
    this.path = path;
    this.#tail = after;
    this.#taken = makeWay === undefined;
    if (makeWay !== undefined) return;
    this.#enqueue(async () => {
      await rm(path, { recursive: true, force: true });
      await mkdir(path, { recursive: true });
    });
  }

  /** Whether the path holds files of this stream. False until a stream that is kept has its first one. */
  get taken(): boolean {
    return this.#taken;
  }

  write(name: string, data: Buffer): void {
    const path = join(this.path, name);
    // Playlists are replaced while they are being read.
    const first = name.endsWith('.m3u8') ? `${path}.next` : path;
    this.#enqueue(
      async () => {
        if (!this.#begun) await this.#begin();
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

  async #begin(): Promise<void> {
    this.#taken = true;
    try {
      await this.#options.makeWay?.();
    } catch (error) {
      // A former recording is still there.
      this.#taken = false;
      throw error;
    }
    // A stream may wait long for its first track. By then another node on this disk may have tidied away what was empty.
    await mkdir(this.path, { recursive: true });
    this.#begun = true;
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
        this.#options.onFailure(error);
      }
    });
  }

  /** A stream that cannot go on is over for those who play it from here. */
  async #endPlaylist(): Promise<void> {
    if (!this.#taken) return;
    const path = join(this.path, this.#options.playlist);
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
