import { readdir, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import type { Clock } from '../clock.js';
import { ComponentError } from '../errors.js';
import { openStore, type ObjectStore, type S3Target } from '../s3/object-store.js';
import { isOrphan, MARK_FILE, readMark, removeMark, touchMark, writeMark } from './part-mark.js';
import type { RecordedPart } from './recorder.js';
import { recoverPart } from './recover-part.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;
/** After this time of trying a part is given up. */
export const GIVE_UP_MS = 24 * 3_600_000;

/** Of an object on its way up to 25 MB are in memory, and a node that ends has many recordings to upload. */
export const UPLOADS_AT_ONCE = 4;

export interface UploadsOptions {
  log: Log;
  clock: Clock;
  /** A part could not be uploaded in all the time there was. */
  onGivenUp?(part: RecordedPart): void;
  open?: (target: S3Target) => Promise<ObjectStore>;
}

/**
 * Brings finished recordings to their bucket, a few at a time, and tries again for as long as it takes. The local files
 * go only when all of them have arrived.
 */
export class Uploads {
  readonly #pending = new Set<string>();
  /** Directories that are in need of another try, by this run or the next. */
  readonly #marked = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  #busy = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly options: UploadsOptions) {}

  /** Whether the files of this directory have not arrived yet and still may. */
  isPending(directory: string): boolean {
    return this.#pending.has(directory);
  }

  /** `prefix` without slashes at its ends; empty = none. `since`: when it was first tried, Unix milliseconds. */
  add(part: RecordedPart, target: S3Target, prefix: string, since = this.options.clock.wallClock()): void {
    this.#pending.add(part.directory);
    const run = this.#bring(part, target, prefix, since).finally(() => {
      this.#pending.delete(part.directory);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** To be called every `BEAT_MS`: no other node takes over what is pending here. */
  async beat(): Promise<void> {
    const now = this.options.clock.wallClock();
    await Promise.all([...this.#pending].map((directory) => touchMark(directory, now)));
  }

  /**
   * Goes on with what another run of this node left behind: completes what was being recorded when it was killed, and
   * uploads what is for the bucket of this node's own configuration. Where credentials came with the request they are gone
   * with that run, and the files are for the garbage collection. What somebody still works on is let alone.
   */
  async resume(rawRecordings: string, target: S3Target | null): Promise<void> {
    const { log, clock } = this.options;
    const entries = await readdir(rawRecordings, { recursive: true, withFileTypes: true }).catch(() => []);
    for (const { name, parentPath: directory } of entries) {
      if (name !== MARK_FILE || this.isPending(directory) || this.#ending.signal.aborted) continue;
      if (!(await isOrphan(directory, clock.wallClock()))) continue;
      const mark = await readMark(directory);
      const isOurs = mark !== undefined && mark.bucket === target?.bucket;
      if (mark === undefined || (mark.draft === null && !isOurs)) continue;
      // From now on it is ours: another node that looks now leaves it alone.
      await touchMark(directory, clock.wallClock());
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
    const { clock } = this.options;
    // Whoever waits for a store to come back waits no longer; what is on its way, or just begins, is waited for.
    this.#ending.abort();
    const done = new AbortController();
    const all = Promise.allSettled(this.#running).then(() => done.abort());
    await Promise.race([all, clock.sleep(timeoutMs, done.signal)]);
    // The next run need not wait until it is sure that nobody works on them.
    await Promise.all([...this.#marked].map((directory) => touchMark(directory, 0)));
  }

  async #bring(part: RecordedPart, target: S3Target, prefix: string, since: number): Promise<void> {
    const { log, clock, open = openStore } = this.options;
    const { signal } = this.#ending;
    const keyOf = (file: string): string => [prefix, part.roomId, part.name, file].filter(Boolean).join('/');
    const fields = { roomId: part.roomId, part: part.name, bucket: target.bucket };
    const mark = { bucket: target.bucket, prefix, uploadingSince: since, draft: null };
    await writeMark(part.directory, mark).catch((error: unknown) => {
      log.warn('recording.upload_not_marked', { ...fields, error });
    });
    this.#marked.add(part.directory);
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
      let store: ObjectStore | undefined;
      try {
        await this.#inTurn(async () => {
          store = await open(target);
          for (const file of part.files) await bringFile(store, keyOf(file), join(part.directory, file));
        });
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
        if (clock.wallClock() - since + waitMs > GIVE_UP_MS) {
          log.error('recording.upload_given_up', { ...fields, files: part.files, error });
          await this.#giveUp(part, (file) => store?.remove(keyOf(file)));
          return;
        }
        log.warn('recording.upload_failed', { ...fields, error, retryInMs: waitMs });
      } finally {
        store?.close();
      }
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
    }
  }

  async #inTurn(run: () => Promise<void>): Promise<void> {
    if (this.#busy < UPLOADS_AT_ONCE) this.#busy++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      await run();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#busy--;
      else next();
    }
  }

  /** Half a recording in the bucket would be taken for a whole one. The files stay, as after any other end. */
  async #giveUp(part: RecordedPart, remove: (file: string) => Promise<void> | undefined): Promise<void> {
    for (const file of part.files) await remove(file)?.catch(() => undefined);
    await removeMark(part.directory);
    this.#marked.delete(part.directory);
    const now = this.options.clock.wallClock() / 1_000;
    for (const file of part.files) await utimes(join(part.directory, file), now, now).catch(() => undefined);
    this.options.onGivenUp?.(part);
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

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Unless it is there already, from an earlier try. */
async function bringFile(store: ObjectStore, key: string, path: string): Promise<void> {
  const { size } = await stat(path);
  if ((await store.sizeOf(key)) === size) return;
  await store.put(key, path);
  const stored = await store.sizeOf(key);
  // Who may only write cannot look: then the store's word that it has it all must do.
  if (stored === size || stored === 'untold') return;
  throw new ComponentError('UPLOAD_FAILED', `${stored ?? 'no'} bytes of ${key} arrived, of ${size}`);
}
