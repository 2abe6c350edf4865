import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import type { Clock } from '../clock.js';
import { openStore, type ObjectStore, type S3Target } from './object-store.js';
import type { RecordedPart } from './recorder.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;
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
