import { appendFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ComponentError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import type { StreamFiles } from './live-stream.js';
import { PLAYLIST_END } from './playlist.js';

export interface StreamDirectoryOptions {
  path: string;
  /** Name of the playlist, which is ended when the stream can no longer be written. */
  playlist: string;
  onFailure(error: unknown): void;
  /** Writing starts after this promise settles. */
  after?: Promise<void>;
  /**
   * Moves an earlier recording away before the first file of a kept stream is written. If absent, the directory is
   * emptied immediately.
   */
  makeWay?(): Promise<void>;
  /** Files written to a kept stream before its first one. */
  about?: Readonly<Record<string, string>>;
  /** Defaults to about ten minutes of a stream. */
  maxWaitingBytes?: number;
}

/** Limit for bytes waiting to be written. */
const MAX_WAITING_BYTES = 200 * 1024 * 1024;

/**
 * Directory of one stream. Changes are made in order. After the first failure nothing more is written, so that the rest
 * stays intact: the file that did not fit is removed, and the playlist ends with the one before it.
 */
export class StreamDirectory implements StreamFiles {
  readonly path: string;
  readonly #options: StreamDirectoryOptions;
  #tail: Promise<void>;
  #failed = false;
  /** True when the path holds this stream rather than an earlier one. */
  #taken: boolean;
  #begun = false;
  #waitingBytes = 0;
  /** Nothing more is accepted; what is queued is still written. */
  #full = false;

  constructor(options: StreamDirectoryOptions) {
    const { path, after = Promise.resolve(), makeWay } = options;
    this.#options = options;
    this.path = path;
    this.#tail = after;
    this.#taken = makeWay === undefined;
    if (makeWay !== undefined) return;
    this.#enqueue(async () => {
      await rm(path, { recursive: true, force: true });
      await makeFolder(path);
    });
  }

  /** True once nothing more is written. */
  get failed(): boolean {
    return this.#failed || this.#full;
  }

  /** True once the path holds files of this stream. A kept stream takes the path with its first file. */
  get taken(): boolean {
    return this.#taken;
  }

  write(name: string, data: Buffer): void {
    const path = join(this.path, name);
    // Playlists may be read at any time, so replace them atomically.
    const first = name.endsWith('.m3u8') ? `${path}.next` : path;
    if (!this.#admits(data)) return;
    this.#enqueue(
      async () => {
        this.#waitingBytes -= data.length;
        if (!this.#begun) await this.#begin();
        await writeFile(first, data);
        if (first !== path) await rename(first, path);
      },
      () => rm(first, { force: true }),
    );
  }

  append(name: string, data: Buffer): void {
    if (!this.#admits(data)) return;
    this.#enqueue(() => {
      this.#waitingBytes -= data.length;
      return append(join(this.path, name), data);
    });
  }

  remove(name: string): void {
    this.#enqueue(() => rm(join(this.path, name), { force: true }));
  }

  /** Resolves when every change so far is done or has failed. Never rejects. */
  idle(): Promise<void> {
    return this.#tail;
  }

  async #begin(): Promise<void> {
    this.#taken = true;
    try {
      await this.#options.makeWay?.();
    } catch (error) {
      // An earlier recording is still in place.
      this.#taken = false;
      throw error;
    }
    // A stream may wait long for its first track, and another node that shares the disk may remove the empty directory
    // in that time.
    await makeFolder(this.path);
    for (const [name, text] of Object.entries(this.#options.about ?? {})) await writeFile(join(this.path, name), text);
    this.#begun = true;
  }

  /**
   * Returns whether the data may be queued. Neither a hanging disk nor a long upload of the previous stream may fill
   * the memory.
   */
  #admits(data: Buffer): boolean {
    if (this.#full || this.#failed) return false;
    const { maxWaitingBytes = MAX_WAITING_BYTES } = this.#options;
    this.#waitingBytes += data.length;
    if (this.#waitingBytes <= maxWaitingBytes) return true;
    this.#full = true;
    this.#enqueue(() => this.#endPlaylist().catch(() => undefined));
    this.#options.onFailure(
      new ComponentError('TOO_SLOW', `more than ${maxWaitingBytes} bytes wait to be written to ${this.path}`),
    );

    return false;
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

  /** Ends the playlist for players reading it from disk. */
  async #endPlaylist(): Promise<void> {
    if (!this.#taken) return;
    const path = join(this.path, this.#options.playlist);
    await stat(path);
    await append(path, Buffer.from(`${PLAYLIST_END}\n`));
  }
}

/** Appends all of the data or none of it. */
async function append(path: string, data: Buffer): Promise<void> {
  const size = await stat(path).then((found) => found.size);
  try {
    await appendFile(path, data);
  } catch (error) {
    await truncate(path, size);
    throw error;
  }
}
