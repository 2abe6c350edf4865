import { readdir, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import { type Clock, sleep } from '@bloom/time';
import type { S3Target } from '../s3/object-store.js';
import { keyOf, Uploader, type UploaderOptions } from '../s3/upload-files.js';
import { isOrphan, MARK_FILE, readMark, removeMark, touchMark, writeMark } from './part-mark.js';
import type { RecordedPart } from './recorder.js';
import { recoverPart } from './recover-part.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;
/** After this time of trying a part is given up. */
export const GIVE_UP_MS = 24 * 3_600_000;

export interface UploadsOptions {
  log: Log;
  clock: Clock;
  /** A part could not be uploaded in all the time there was. */
  onGivenUp?(part: RecordedPart): void;
  open?: UploaderOptions['open'];
}

/**
 * Brings finished recordings to their bucket, a few at a time, and tries again for as long as it takes. The local files
 * go only when all of them have arrived.
 */
export class Uploads {
  readonly #options: UploadsOptions;
  readonly #pending = new Set<string>();
  /** Directories that are in need of another try, by this run or the next. */
  readonly #marked = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  readonly #uploader: Uploader;

  constructor(options: UploadsOptions) {
    this.#options = options;
    const { open } = options;
    this.#uploader = new Uploader({ skipPresent: true, ...(open === undefined ? {} : { open }) });
  }

  /** Whether the files of this directory have not arrived yet and still may. */
  isPending(directory: string): boolean {
    return this.#pending.has(directory);
  }

  /** `prefix` without slashes at its ends; empty = none. `since`: when it was first tried, Unix milliseconds. */
  add(part: RecordedPart, target: S3Target, prefix: string, since = this.#options.clock.wall()): void {
    this.#pending.add(part.directory);
    const run = this.#bring(part, target, prefix, since).finally(() => {
      this.#pending.delete(part.directory);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** To be called every `BEAT_MS`: no other node takes over what is pending here. */
  async beat(): Promise<void> {
    const now = this.#options.clock.wall();
    await Promise.all([...this.#pending].map((directory) => touchMark(directory, now)));
  }

  /**
   * Goes on with what another run of this node left behind: completes what was being recorded when it was killed, and
   * uploads what is for the bucket of this node's own configuration. Where credentials came with the request they are gone
   * with that run, and the files are for the garbage collection. What somebody still works on is let alone.
   */
  async resume(rawRecordings: string, target: S3Target | null): Promise<void> {
    const { log, clock } = this.#options;
    const entries = await readdir(rawRecordings, { recursive: true, withFileTypes: true }).catch(() => []);
    for (const { name, parentPath: directory } of entries) {
      if (name !== MARK_FILE || this.isPending(directory) || this.#ending.signal.aborted) continue;
      if (!(await isOrphan(directory, clock.wall()))) continue;
      const mark = await readMark(directory);
      const isOurs = mark !== undefined && mark.bucket === target?.bucket;
      if (mark === undefined || (mark.draft === null && !isOurs)) continue;
      // From now on it is ours: another node that looks now leaves it alone.
      await touchMark(directory, clock.wall());
      const fields = { roomId: basename(dirname(directory)), part: basename(directory) };
      try {
        const files = await recoverPart(directory, mark);
        if (mark.draft !== null) {
          log.info('recording.recovered', { ...fields, files: files.length });
          // There is a report now: this is done once.
          if (files.length > 0) await writeMark(directory, { ...mark, draft: null });
        }
        if (files.length === 0 || !isOurs) continue;
        log.info('recording.upload_resumed', fields);
        const part = { directory, roomId: fields.roomId, name: fields.part, files };
        this.add(part, target, mark.prefix, mark.uploadingSince ?? undefined);
      } catch (error) {
        log.warn('recording.recover_failed', { ...fields, error });
      }
    }
  }

  /** Waits for what is on its way, and gives up waiting for stores that are down; their files stay. Idempotent. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const { clock } = this.#options;
    // Whoever waits for a store to come back waits no longer; what is on its way, or just begins, is waited for.
    this.#ending.abort();
    const done = new AbortController();
    const all = Promise.allSettled(this.#running).then(() => done.abort());
    await Promise.race([all, sleep(timeoutMs, { clock, signal: done.signal })]);
    // The next run need not wait until it is sure that nobody works on them.
    await Promise.all([...this.#marked].map((directory) => touchMark(directory, 0)));
  }

  async #bring(part: RecordedPart, target: S3Target, prefix: string, since: number): Promise<void> {
    const { log, clock } = this.#options;
    const { signal } = this.#ending;
    const files = part.files.map((file) => ({
      key: keyOf(prefix, part.roomId, part.name, file),
      path: join(part.directory, file),
    }));
    const fields = { roomId: part.roomId, part: part.name, bucket: target.bucket };
    const mark = { bucket: target.bucket, prefix, uploadingSince: since, draft: null };
    await writeMark(part.directory, mark).catch((error: unknown) => {
      log.warn('recording.upload_not_marked', { ...fields, error });
    });
    this.#marked.add(part.directory);
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
      try {
        await this.#uploader.upload(target, files);
        this.#marked.delete(part.directory);
        await this.#removeLocal(part);
        log.info('recording.uploaded', { ...fields, files: part.files.length });
        return;
      } catch (error) {
        if (!(await exists(part.directory))) {
          this.#marked.delete(part.directory);
          log.error('recording.upload_gone', { ...fields, files: part.files, error });
          return;
        }
        if (clock.wall() - since + waitMs > GIVE_UP_MS) {
          log.error('recording.upload_given_up', { ...fields, files: part.files, error });
          // Half a recording in the bucket would be taken for a whole one.
          await this.#uploader.remove(
            target,
            files.map(({ key }) => key),
          );
          await this.#giveUp(part);
          return;
        }
        log.warn('recording.upload_failed', { ...fields, error, retryInMs: waitMs });
      }
      await sleep(waitMs, { clock, signal });
      if (signal.aborted) return;
    }
  }

  /** The local files stay for an hour, as after any other end. */
  async #giveUp(part: RecordedPart): Promise<void> {
    await removeMark(part.directory);
    this.#marked.delete(part.directory);
    const now = this.#options.clock.wall() / 1_000;
    for (const file of part.files) await utimes(join(part.directory, file), now, now).catch(() => undefined);
    this.#options.onGivenUp?.(part);
  }

  async #removeLocal({ directory }: RecordedPart): Promise<void> {
    try {
      await rm(directory, { recursive: true, force: true });
      // Only when this was the last recording of the room.
      await rmdir(dirname(directory)).catch(() => undefined);
    } catch (error) {
      this.#options.log.warn('recording.local_files_stay', { error });
    }
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
