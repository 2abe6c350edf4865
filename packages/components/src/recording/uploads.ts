import { readdir, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import { type Clock, sleep } from '@bloom/time';
import { type S3Target, withoutAddress } from '../s3/object-store.js';
import { keyOf, Uploader, type UploaderOptions } from '../s3/upload-files.js';
import { directories } from './garbage.js';
import {
  BEAT_MS,
  ORPHAN_MS,
  type PartMark,
  readMark,
  removeMark,
  touchedAt,
  touchMark,
  writeMark,
} from './part-mark.js';
import { MIX_FILE } from './part-mix.js';
import { type StoredPlace, writeFailure } from './part-outcome.js';
import type { RecordedPart } from './recorder.js';
import { newsOf, type RecordingNews } from './recording-news.js';
import { recoverPart } from './recover-part.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 600_000;
/** A part that keeps failing for this long is given up on. */
export const GIVE_UP_MS = 24 * 3_600_000;

interface UploadTarget {
  target: S3Target;
  /** Without leading or trailing slashes; may be empty. */
  prefix: string;
  /** The credentials came with the request: they are never stored, and their endpoint is never logged. */
  byRequest?: boolean;
  /** Component that asked for news. */
  notify?: string;
  /** Called once with the news. */
  told?(): void;
}

/** An upload in progress. */
interface Bringing {
  readonly cancelled: AbortController;
  /** Share of the files that have arrived, 0 to 1. */
  progress: number;
}

export interface UploadsOptions {
  log: Log;
  clock: Clock;
  /** Called when a part is given up on. */
  onGivenUp?(part: RecordedPart): void;
  /** Called when every object has arrived, before the local files are removed. Must not reject. */
  onUploaded?(part: RecordedPart, stored: StoredPlace): Promise<void>;
  /** Called when an upload is cancelled, after `onUploaded` if that was running. Must not reject. */
  onCancelled?(part: RecordedPart): Promise<void>;
  /** Returns true if a part was uploaded completely, by a process that did not come to remove its files. */
  isUploaded?(part: RecordedPart): Promise<boolean>;
  /** Called once for each part whose component asked for it. */
  onNews?(news: RecordingNews): void;
  open?: UploaderOptions['open'];
}

/**
 * Uploads finished recordings, a few at a time, with retries until they succeed or are given up on. The local files are
 * removed once all of them have arrived.
 */
export class Uploads {
  readonly #options: UploadsOptions;
  readonly #pending = new Map<string, Bringing>();
  /** Directories whose files are being completed. */
  readonly #recovering = new Set<string>();
  /** Directories with an unfinished upload, for this run or the next one. */
  readonly #marked = new Set<string>();
  /** Last known touch time of each mark of other nodes, and when it was first seen on this node's clock. */
  readonly #seen = new Map<string, { touchedMs: number; sinceMs: number }>();
  readonly #running = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  readonly #uploader: Uploader;

  constructor(options: UploadsOptions) {
    this.#options = options;
    const { open } = options;
    this.#uploader = new Uploader({ skipPresent: true, ...(open === undefined ? {} : { open }) });
  }

  /** Returns true while files of this directory remain to be uploaded. */
  isPending(directory: string): boolean {
    return this.#pending.has(directory);
  }

  /** Returns the share of a part's files that have arrived, 0 to 1; undefined unless it is being uploaded. */
  progress(directory: string): number | undefined {
    return this.#pending.get(directory)?.progress;
  }

  /** Ends the upload of a part whose files are about to be removed, and removes the objects that have arrived. */
  cancel(directory: string): void {
    this.#pending.get(directory)?.cancelled.abort();
  }

  /**
   * Starts the upload of a part. `since` is the time of the first attempt in Unix milliseconds.
   */
  add(part: RecordedPart, to: UploadTarget, since = this.#options.clock.wall()): void {
    const bringing = { cancelled: new AbortController(), progress: 0 };
    this.#pending.set(part.directory, bringing);
    const run = this.#bring(part, { ...to, since, bringing }).finally(() => {
      this.#pending.delete(part.directory);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** Shows other nodes which parts this one is uploading or completing; called every `BEAT_MS`. */
  async beat(): Promise<void> {
    const now = this.#options.clock.wall();
    await Promise.all([...this.#pending.keys(), ...this.#recovering].map((directory) => touchMark(directory, now)));
  }

  /**
   * Resumes parts left behind by an earlier run of this node; called every `ORPHAN_MS`. Completes recordings
   * interrupted by a kill, and uploads those destined for the configured bucket. Credentials that came with a request
   * died with that run, so its files are left to garbage collection. Parts that another node is working on are left
   * alone.
   */
  async resume(rawRecordings: string, target: S3Target | null): Promise<void> {
    const { log, clock } = this.#options;
    const parts = await partsIn(rawRecordings);
    const there = new Set(parts);
    for (const directory of this.#seen.keys()) if (!there.has(directory)) this.#seen.delete(directory);
    for (const directory of parts) {
      if (this.isPending(directory) || this.#ending.signal.aborted) continue;
      if (!(await this.#isOrphan(directory))) continue;
      const mark = await readMark(directory);
      const isOurs = mark !== undefined && mark.byRequest !== true && mark.bucket === target?.bucket;
      const isUntold = mark?.byRequest === true && mark.notify !== undefined;
      if (mark === undefined || (mark.draft === null && !isOurs && !isUntold)) continue;
      // Claims the part, so other nodes leave it alone from here on.
      this.#recovering.add(directory);
      await touchMark(directory, clock.wall());
      const fields = { roomId: basename(dirname(directory)), part: basename(directory) };
      try {
        const files = await recoverPart(directory, mark);
        if (mark.draft !== null) {
          log.info('recording.recovered', { ...fields, files: files.length });
          // Recover only once: the report now exists.
          if (files.length > 0) await writeMark(directory, { ...mark, draft: null });
        }
        const part = { directory, roomId: fields.roomId, name: fields.part, files };
        if (files.length === 0 && mark.draft !== null && mark.notify !== undefined) {
          const to = { componentId: mark.notify, prefix: mark.prefix };
          this.#options.onNews?.(newsOf(part, to, 'nothing was recorded'));
        }
        if (files.length === 0) continue;
        if ((await this.#options.isUploaded?.(part)) === true) {
          await this.#removeLocal(part);
          continue;
        }
        if (mark.byRequest === true && mark.notify !== undefined) await this.#abandon(part, mark);
        if (!isOurs) continue;
        log.info('recording.upload_resumed', fields);
        const { prefix, notify } = mark;
        const to = { target, prefix, ...(notify === undefined ? {} : { notify }) };
        this.add(part, to, mark.uploadingSince ?? undefined);
      } catch (error) {
        log.warn('recording.recover_failed', { ...fields, error });
      } finally {
        this.#recovering.delete(directory);
      }
    }
  }

  /** The mark's age says nothing, because it was touched on another node's clock, which may differ from this one's. */
  async #isOrphan(directory: string): Promise<boolean> {
    const touchedMs = await touchedAt(directory);
    if (touchedMs === undefined || touchedMs === 0) return touchedMs === 0;
    const nowMs = this.#options.clock.now();
    const seen = this.#seen.get(directory);
    // The interval between two checks is only approximate.
    if (seen?.touchedMs === touchedMs) return nowMs - seen.sinceMs > ORPHAN_MS - BEAT_MS;
    this.#seen.set(directory, { touchedMs, sinceMs: nowMs });

    return false;
  }

  /** Waits for uploads in progress, but not for stores that are down; their files stay. Idempotent. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const { clock } = this.#options;
    // Ends the pauses between attempts; uploads in progress or about to start are awaited.
    this.#ending.abort();
    const done = new AbortController();
    const all = Promise.allSettled(this.#running).then(() => done.abort());
    await Promise.race([all, sleep(timeoutMs, { clock, signal: done.signal })]);
    // Lets the next run resume them immediately.
    await Promise.all([...this.#marked].map((directory) => touchMark(directory, 0)));
  }

  async #bring(
    part: RecordedPart,
    {
      target,
      prefix,
      byRequest = false,
      notify,
      told,
      since,
      bringing,
    }: UploadTarget & { since: number; bringing: Bringing },
  ): Promise<void> {
    const { log, clock, onUploaded, onCancelled } = this.#options;
    const { signal: cancelled } = bringing.cancelled;
    const signal = AbortSignal.any([this.#ending.signal, cancelled]);
    const files = part.files.map((file) => ({
      key: keyOf(prefix, part.roomId, part.name, file),
      path: join(part.directory, file),
    }));
    const fields = { roomId: part.roomId, part: part.name, bucket: target.bucket };
    const mark = {
      bucket: target.bucket,
      prefix,
      ...(byRequest ? ({ byRequest } as const) : {}),
      ...(notify === undefined ? {} : { notify }),
      uploadingSince: since,
      draft: null,
    };
    await writeMark(part.directory, mark).catch((error: unknown) => {
      log.warn('recording.upload_not_marked', { ...fields, error });
    });
    this.#marked.add(part.directory);
    const removeObjects = (): Promise<void> =>
      this.#uploader.remove(
        target,
        files.map(({ key }) => key),
      );
    const tell = (error?: unknown): void => {
      if (notify !== undefined) this.#options.onNews?.(newsOf(part, { componentId: notify, prefix }, error));
      told?.();
    };
    const end = async (): Promise<void> => {
      this.#marked.delete(part.directory);
      await onCancelled?.(part);
      await removeObjects();
      log.info('recording.upload_cancelled', fields);
      tell('it was deleted');
    };
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS)) {
      try {
        await this.#uploader.upload(target, files, {
          onArrived: (arrived) => {
            bringing.progress = arrived / files.length;
          },
        });
        if (cancelled.aborted) return await end();
        await onUploaded?.(part, { bucket: target.bucket, prefix });
        // Deleted meanwhile: the note may be newer than its removal.
        if (cancelled.aborted) return await end();
        tell();
        this.#marked.delete(part.directory);
        await this.#removeLocal(part);
        log.info('recording.uploaded', { ...fields, files: part.files.length });
        return;
      } catch (cause) {
        const error = byRequest ? withoutAddress(cause) : cause;
        if (cancelled.aborted) return await end();
        if (!(await exists(part.directory))) {
          this.#marked.delete(part.directory);
          log.error('recording.upload_gone', { ...fields, files: part.files, error });
          tell('its files have disappeared from the disk');
          return;
        }
        if (clock.wall() - since + waitMs > GIVE_UP_MS) {
          log.error('recording.upload_given_up', { ...fields, files: part.files, error });
          // A partial recording in the bucket would be mistaken for a complete one.
          await removeObjects();
          await this.#giveUp(part, error);
          tell(error);
          return;
        }
        log.warn('recording.upload_failed', { ...fields, error, retryInMs: waitMs });
      }
      await sleep(waitMs, { clock, signal });
      if (cancelled.aborted) return end();
      if (signal.aborted) return;
    }
  }

  /** Reports the end of a part whose credentials ended with the process that recorded it, once: the mark goes. */
  async #abandon(part: RecordedPart, { notify = '', prefix }: PartMark): Promise<void> {
    const reason = 'the credentials of the request ended with the process that recorded it';
    await writeFailure(part.directory, reason);
    await removeMark(part.directory);
    this.#options.onNews?.(newsOf(part, { componentId: notify, prefix }, reason));
  }

  /** Keeps the local files for an hour, as for any other recording. */
  async #giveUp(part: RecordedPart, error: unknown): Promise<void> {
    await writeFailure(part.directory, error instanceof Error ? error.message : String(error));
    await removeMark(part.directory);
    this.#marked.delete(part.directory);
    const now = this.#options.clock.wall() / 1_000;
    for (const file of part.files) await utimes(join(part.directory, file), now, now).catch(() => undefined);
    this.#options.onGivenUp?.(part);
  }

  /** Removes the files, except a mix: it is not among the uploaded ones. */
  async #removeLocal({ directory }: RecordedPart): Promise<void> {
    try {
      for (const name of await readdir(directory)) {
        if (name !== MIX_FILE) await rm(join(directory, name), { recursive: true, force: true });
      }
      // Fail unless nothing is left, and this was the room's last recording.
      await rmdir(directory).catch(() => undefined);
      await rmdir(dirname(directory)).catch(() => undefined);
    } catch (error) {
      this.#options.log.warn('recording.local_files_stay', { error });
    }
  }
}

/**
 * Lists level by level: a recursive `readdir` returns nothing at all if it meets an unreadable directory such as
 * `lost+found`.
 */
async function partsIn(rawRecordings: string): Promise<string[]> {
  const parts: string[] = [];
  for (const roomId of await directories(rawRecordings)) {
    const room = join(rawRecordings, roomId);
    for (const name of await directories(room)) parts.push(join(room, name));
  }

  return parts;
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
