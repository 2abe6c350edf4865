import { readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import type { Clock } from '../clock.js';
import { openStore, type ObjectStore, type S3Target } from './object-store.js';
import type { RecordedPart } from './recorder.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;
/** Beside the files while they have not arrived: where they belong. No credentials. */
const MARK = '.upload.json';
/** After this time of trying a part is given up. */
export const GIVE_UP_MS = 24 * 3_600_000;

export interface UploadsOptions {
  log: Log;
  clock: Clock;
  /** A part could not be uploaded in all the time there was. */
  onGivenUp?(part: RecordedPart): void;
  open?: (target: S3Target) => Promise<ObjectStore>;
}

/**
 * Brings finished recordings to their bucket, one after another, and tries again for as long as it takes. The local files
 * go only when all of them have arrived.
 */
export class Uploads {
  readonly #pending = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  readonly #ending = new AbortController();

  constructor(private readonly options: UploadsOptions) {}

  /** Whether the files of this directory have not arrived yet and still may. */
  isPending(directory: string): boolean {
    return this.#pending.has(directory);
  }

  /** `prefix` without slashes at its ends; empty = none. */
  add(part: RecordedPart, target: S3Target, prefix: string): void {
    this.#pending.add(part.directory);
    const run = this.#bring(part, target, prefix).finally(() => {
      this.#pending.delete(part.directory);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /**
   * Goes on with what a former run of this node left behind for the bucket of its own configuration. Where credentials came
   * with the request they are gone with that run, and the files are for the garbage collection.
   */
  async resume(rawRecordings: string, target: S3Target): Promise<void> {
    const parts = await readdir(rawRecordings, { recursive: true, withFileTypes: true }).catch(() => []);
    for (const entry of parts) {
      if (entry.name !== MARK) continue;
      const directory = entry.parentPath;
      const mark = await readMark(join(directory, MARK));
      if (mark?.bucket !== target.bucket || this.isPending(directory)) continue;
      const files = (await readdir(directory)).filter((file) => file !== MARK);
      const part = { directory, roomId: basename(dirname(directory)), name: basename(directory), files };
      this.options.log.info('recording.upload_resumed', { roomId: part.roomId, part: part.name });
      this.add(part, target, mark.prefix);
    }
  }

  /** Waits for what is on its way, and gives up waiting for stores that are down; their files stay. Idempotent. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const { clock } = this.options;
    // Whoever waits for a store to come back waits no longer; what is on its way, or just begins, is waited for.
    this.#ending.abort();
    const done = new AbortController();
    const all = Promise.allSettled(this.#running).then(() => done.abort());
    await Promise.race([all, clock.sleep(timeoutMs, done.signal)]);
  }

  async #bring(part: RecordedPart, target: S3Target, prefix: string): Promise<void> {
    const { log, clock, open = openStore, onGivenUp } = this.options;
    const { signal } = this.#ending;
    const startedMs = clock.now();
    const keyOf = (file: string): string => [prefix, part.roomId, part.name, file].filter(Boolean).join('/');
    const fields = { roomId: part.roomId, part: part.name, bucket: target.bucket };
    const mark: Mark = { bucket: target.bucket, prefix };
    await writeFile(join(part.directory, MARK), JSON.stringify(mark)).catch((error: unknown) => {
      log.warn('recording.upload_not_marked', { ...fields, error });
    });
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
      let store: ObjectStore | undefined;
      try {
        store = await open(target);
        for (const file of part.files) await store.put(keyOf(file), join(part.directory, file));
        await this.#removeLocal(part);
        log.info('recording.uploaded', { ...fields, files: part.files.length });
        return;
      } catch (error) {
        const giveUp = clock.now() - startedMs + waitMs > GIVE_UP_MS;
        log[giveUp ? 'error' : 'warn'](giveUp ? 'recording.upload_given_up' : 'recording.upload_failed', {
          ...fields,
          error,
          ...(giveUp ? { files: part.files } : { retryInMs: waitMs }),
        });
        if (giveUp) {
          // Half a recording in the bucket would be taken for a whole one.
          for (const file of part.files) await store?.remove(keyOf(file)).catch(() => undefined);
          await rm(join(part.directory, MARK), { force: true }).catch(() => undefined);
          onGivenUp?.(part);
          return;
        }
      } finally {
        store?.close();
      }
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
    }
  }

  async #removeLocal({ directory }: RecordedPart): Promise<void> {
    try {
      await rm(directory, { recursive: true, force: true });
      // Only when this was the last recording of the room.
      await rmdir(dirname(directory)).catch(() => undefined);
    } catch (error) {
      this.options.log.warn('recording.local_files_stay', { error });
    }
  }
}

interface Mark {
  bucket: string;
  prefix: string;
}

async function readMark(path: string): Promise<Mark | undefined> {
  try {
    const { bucket, prefix } = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;

    return typeof bucket === 'string' && typeof prefix === 'string' ? { bucket, prefix } : undefined;
  } catch {
    return undefined;
  }
}
