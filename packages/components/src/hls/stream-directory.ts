import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamFiles } from './live-stream.js';

/**
 * The directory of one stream. Deeds happen in order; after the first failure nothing more is written, so that what is
 * there stays whole.
 */
export class StreamDirectory implements StreamFiles {
  private tail: Promise<void>;
  private failed = false;

  /** Begins by wiping what a former stream left there, once `after` has settled. */
  constructor(
    readonly path: string,
    private readonly onFailure: (error: unknown) => void,
    after: Promise<void> = Promise.resolve(),
  ) {
    this.tail = after;
    this.enqueue(async () => {
      await rm(path, { recursive: true, force: true });
      await mkdir(path, { recursive: true });
    });
  }

  write(name: string, data: Buffer): void {
    this.enqueue(async () => {
      const path = join(this.path, name);
      if (!name.endsWith('.m3u8')) return writeFile(path, data);
      // Playlists are replaced while they are being read.
      const next = `${path}.next`;
      await writeFile(next, data);
      await rename(next, path);
    });
  }

  remove(name: string): void {
    this.enqueue(() => rm(join(this.path, name), { force: true }));
  }

  /** Everything asked for so far has been done or has failed. Never rejects. */
  idle(): Promise<void> {
    return this.tail;
  }

  private enqueue(deed: () => Promise<void>): void {
    this.tail = this.tail.then(async () => {
      if (this.failed) return;
      try {
        await deed();
      } catch (error) {
        this.failed = true;
        this.onFailure(error);
      }
    });
  }
}
