import { rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '@bloom/log';
import type { Processes } from '@bloom/processes';
import { type Clock, sleep } from '@bloom/time';
import pLimit from 'p-limit';
import { nativeInstalled } from '../av/native.js';
import { ComponentError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import type { MixPicture } from '../mix/mix-protocol.js';
import { mixRecording, pictureOf } from '../mix/mix-recording.js';
import { type S3Target, withoutAddress } from '../s3/object-store.js';
import { keyOf, Uploader, type UploaderOptions } from '../s3/upload-files.js';
import { MixSource } from './mix-source.js';
import { type FoundMix, isActive, type ListedMix, listedMix, MIX_FILE } from './part-mix.js';
import type { MixNote, MixNotes, PartMixes } from './part-mix.js';
import type { PartName } from './part-notes.js';
import type { UploadNotes } from './part-outcome.js';
import type { PartState } from './part-state.js';
import { THIS_WRITER } from './part-writer.js';
import { PART_NAME } from './parts.js';
import { type RequestCredentials, targetOf, type UploadDefaults } from './upload-target.js';

/** Mixes that may wait for the one at work. */
export const MAX_WAITING_MIXES = 16;
/** Pauses between the attempts to upload a mix. */
const RETRY_MS = [5_000, 30_000];
const MAX_REASON = 500;

/** What a request asks for. */
export interface MixOrder {
  picture: Partial<MixPicture>;
  /** Where to fetch the tracks and upload the mix; undefined = as the environment says. */
  credentials?: RequestCredentials;
  /** Parts that continue the recording where its room moved, in order. Earlier ones are known by its report. */
  later?: readonly string[];
  /** Mixes the rest if a part cannot be found. */
  skipMissing?: boolean;
}

export interface MixesOptions extends UploadDefaults {
  /** `raw_recordings` */
  directory: string;
  notes: MixNotes;
  /** Notes about uploaded recordings. */
  uploaded: UploadNotes;
  /** Returns the state of a recording; undefined if there is none. */
  stateOf(part: PartName): Promise<PartState | undefined>;
  processes: Processes;
  log: Log;
  clock: Clock;
  /** Built entry of the mixing process; defaults to the one beside its module. */
  mixerEntry?: URL;
  open?: UploaderOptions['open'];
  /** Returns the bytes that can still be written to the disk of a directory; defaults to the system's answer. */
  freeBytes?(directory: string): Promise<number>;
}

interface Job {
  readonly part: PartName;
  readonly later: readonly string[];
  readonly skipMissing: boolean;
  /** Names of the parts before it; garbage collection must leave them too. */
  readonly earlier: readonly string[];
  readonly target: S3Target | null;
  /** The credentials came with the request: their endpoint is never shown or logged. */
  readonly byRequest: boolean;
  readonly cancelled: AbortController;
  note: MixNote;
  progress: number | undefined;
  /** The note is on the disk, so whoever removes it there ends the job. */
  isNoted: boolean;
  /** The movie lies beside the tracks. */
  isPublished: boolean;
  /** Nobody wants the result. */
  isDropped: boolean;
}

/**
 * Mixes recordings into one movie each, one at a time and at the lowest priority, because the node carries calls. A job
 * ends with its process: another run of the node shows it as failed.
 */
export class Mixes implements PartMixes {
  readonly #options: MixesOptions;
  readonly #jobs = new Map<string, Job>();
  /** Includes dropped jobs that have not ended yet. */
  readonly #running = new Set<Promise<void>>();
  readonly #turn = pLimit(1);
  readonly #uploader: Uploader;
  readonly #source: MixSource;
  #isClosing = false;

  constructor(options: MixesOptions) {
    this.#options = options;
    const { open } = options;
    this.#uploader = new Uploader(open === undefined ? {} : { open });
    this.#source = new MixSource(options);
  }

  /**
   * Queues the mix of a recording. Returns undefined if there is no such recording.
   * @throws ComponentError `IN_PROGRESS`, `TOO_MANY_MIXES`, `NATIVE_FAILED` without the library, `MIX_FAILED` for an
   *   impossible picture
   * @throws RoomError `INVALID_OPTIONS` for credentials that cannot be used
   */
  async start(part: PartName, order: MixOrder): Promise<ListedMix | undefined> {
    const { clock, notes } = this.#options;
    const picture = pictureOf(order.picture);
    const target = targetOf(this.#options, order.credentials ?? null);
    const state = await this.#options.stateOf(part);
    if (state === undefined) return undefined;
    const what = `Recording ${part.roomId}/${part.name}`;
    if (state === 'recording') throw new ComponentError('IN_PROGRESS', `${what} is still being recorded`);
    await this.#source.check(part, target, state);
    if (!nativeInstalled()) {
      throw new ComponentError('NATIVE_FAILED', 'node-av, which decodes and encodes, is not installed on this node');
    }
    const earlier = await this.#source.earlier(part);
    const other = await notes.read(part, clock.wall());
    const isMixed = this.#jobs.has(keyIn(part)) || (other !== undefined && isActive(other));
    if (isMixed) throw new ComponentError('IN_PROGRESS', `${what} is already being mixed`);
    if (this.#isClosing) throw new ComponentError('TOO_MANY_MIXES', 'This node is being stopped');
    if (this.#running.size > MAX_WAITING_MIXES) {
      const full = `${MAX_WAITING_MIXES} recordings already wait on this node to be mixed`;
      throw new ComponentError('TOO_MANY_MIXES', full);
    }
    const job: Job = {
      part,
      later: order.later ?? [],
      skipMissing: order.skipMissing ?? false,
      earlier,
      target,
      byRequest: order.credentials !== undefined,
      cancelled: new AbortController(),
      note: { ...picture, state: 'queued', requestedAt: clock.wall(), endedAt: null },
      progress: undefined,
      isNoted: false,
      isPublished: false,
      isDropped: false,
    };
    this.#jobs.set(keyIn(part), job);
    const noted = this.#write(job, job.note);
    const run: Promise<void> = this.#turn(async () => {
      await noted;
      await this.#run(job);
    }).finally(() => this.#running.delete(run));
    this.#running.add(run);
    await noted;

    return job.note;
  }

  async find(part: PartName): Promise<FoundMix | undefined> {
    const { notes, clock } = this.#options;
    const job = this.#jobs.get(keyIn(part));
    const note = job?.note ?? (await notes.read(part, clock.wall()));
    if (note === undefined) return undefined;
    const listed = await listedMix(note, this.#directoryOf(part));
    const { progress } = job ?? {};

    return { mix: progress === undefined ? listed : { ...listed, progress }, isHere: job !== undefined };
  }

  async remove(part: PartName): Promise<boolean> {
    const job = this.#jobs.get(keyIn(part));
    if (job !== undefined) this.#drop(job);
    const wasNoted = await this.#options.notes.remove(part);
    const hadFile = await this.#removeFile(part);

    return job !== undefined || wasNoted || hadFile;
  }

  /** Returns true if a mix of this node, or of one that shares the directory, needs this part or works in it. */
  async isUsing(directory: string): Promise<boolean> {
    for (const { part, earlier, later } of this.#jobs.values()) {
      const needed = [part.name, ...earlier, ...later].map((name) => this.#directoryOf({ ...part, name }));
      if (needed.includes(directory) || directory === this.#workOf(part)) return true;
    }
    const { notes, clock } = this.#options;
    const part = { roomId: basename(dirname(directory)), name: basename(directory) };

    return PART_NAME.test(part.name) && notes.isWorkedOn(part, clock.wall());
  }

  /**
   * Shows other nodes which mixes this one works on, and ends those removed there, and the one at work when it takes
   * the space of recordings in progress; called every `BEAT_MS`.
   */
  async beat(): Promise<void> {
    const { notes, clock } = this.#options;
    for (const job of this.#jobs.values()) {
      if (await this.#isOurs(job)) await notes.touch(job.part, clock.wall());
      else this.#drop(job);
      const isWriting = job.note.state === 'fetching' || job.note.state === 'mixing';
      const short = isWriting ? await this.#source.shortage(0) : undefined;
      if (short !== undefined) job.cancelled.abort(short);
    }
  }

  /** Ends all mixes within the given time; they have failed then. Idempotent. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#isClosing = true;
    for (const { cancelled } of this.#jobs.values()) cancelled.abort();
    const done = new AbortController();
    void Promise.allSettled(this.#running).then(() => done.abort());
    await sleep(timeoutMs, { clock: this.#options.clock, signal: done.signal });
  }

  async #run(job: Job): Promise<void> {
    const { log, clock, processes, mixerEntry } = this.#options;
    const { part, note } = job;
    const fields = { roomId: part.roomId, part: part.name };
    const work = this.#workOf(part);
    const { signal } = job.cancelled;
    const startedAtMs = clock.now();
    const missing: string[] = [];
    try {
      await this.#become(job, { state: 'mixing' });
      await rm(work, { recursive: true, force: true });
      await makeFolder(work);
      const directories = await this.#source.gather(
        {
          ...job,
          signal,
          fetching: async () => {
            if (job.note.state !== 'fetching') await this.#become(job, { state: 'fetching' });
          },
          onProgress: (share) => {
            job.progress = share;
          },
          onMissing: (lost) => {
            missing.push(lost);
            log.warn('recording.mix_incomplete', { ...fields, file: lost, reason: 'the part cannot be found' });
          },
        },
        work,
      );
      await this.#become(job, { state: 'mixing', ...(missing.length === 0 ? {} : { missing }) });
      const { layout, width, height } = note;
      const output = join(work, MIX_FILE);
      const { durationMs, tracks } = await mixRecording({
        directories,
        output,
        picture: { layout, width, height },
        processes,
        isBatch: true,
        hasGaps: missing.length > 0,
        signal,
        onProgress: (share) => {
          job.progress = share;
        },
        onLeftOut: (path, reason) =>
          log.warn('recording.mix_incomplete', { ...fields, file: nameIn(work, path), reason }),
        ...(mixerEntry === undefined ? {} : { entry: mixerEntry }),
      });
      const made = { seconds: Math.round(durationMs) / 1_000, bytes: (await stat(output)).size };
      await this.#publish(job, output);
      await this.#sweep(work);
      await this.#deliver(job, made);
      const tookMs = Math.round(clock.now() - startedAtMs);
      log.info('recording.mixed', { ...fields, ...made, tracks, tookMs });
    } catch (error) {
      await this.#sweep(work);
      if (job.isDropped) {
        if (job.isPublished) await this.#removeFile(part);
        log.info('recording.mix_cancelled', fields);
      } else {
        const reason = this.#reasonOf(job, signal.aborted ? signal.reason : error, work);
        log.warn('recording.mix_failed', { ...fields, reason });
        await this.#become(job, { state: 'failed', reason, endedAt: clock.wall() }).catch(() => undefined);
      }
    } finally {
      this.#forget(job);
    }
  }

  async #sweep(work: string): Promise<void> {
    await rm(work, { recursive: true, force: true }).catch(() => undefined);
    // Fails unless the room has no recording.
    await rmdir(dirname(work)).catch(() => undefined);
  }

  /** Moves the movie beside the tracks. */
  async #publish(job: Job, output: string): Promise<void> {
    const directory = this.#directoryOf(job.part);
    if (!(await this.#isOurs(job))) this.#drop(job);
    for (let attempt = 1; ; attempt++) {
      await makeFolder(directory);
      try {
        await rename(output, join(directory, MIX_FILE));
        break;
      } catch (error) {
        // An upload has removed the empty directory.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt > 2) throw error;
      }
    }
    job.isPublished = true;
  }

  /** Uploads the movie if there is a store, and notes that the mix is complete. */
  async #deliver(job: Job, made: { seconds: number; bytes: number }): Promise<void> {
    const { clock } = this.#options;
    const { part, target } = job;
    if (target === null) return this.#become(job, { ...made, state: 'finished', endedAt: clock.wall() });
    await this.#become(job, { ...made, state: 'uploading' });
    const key = keyOf(await this.#source.prefixOf(part, target), part.roomId, part.name, MIX_FILE);
    const path = join(this.#directoryOf(part), MIX_FILE);
    const { signal } = job.cancelled;
    for (const retryMs of [...RETRY_MS, undefined]) {
      try {
        await this.#uploader.upload(target, [{ key, path }], { signal });
        break;
      } catch (error) {
        if (retryMs === undefined || signal.aborted) throw error;
        await sleep(retryMs, { clock, signal });
      }
    }
    try {
      await this.#become(job, { state: 'uploaded', endedAt: clock.wall() });
    } catch (error) {
      await this.#uploader.remove(target, [key]);
      throw error;
    }
  }

  /** @throws Error when the job is no longer wanted */
  async #become(job: Job, changes: Partial<MixNote>): Promise<void> {
    if (!(await this.#isOurs(job))) this.#drop(job);
    if (job.isDropped) throw new Error('nobody wants the mix any more');
    if (changes.endedAt === undefined) job.cancelled.signal.throwIfAborted();
    const note = { ...job.note, ...changes };
    await this.#write(job, note);
    if (job.isDropped) {
      // Its removal came before the note.
      if (!this.#jobs.has(keyIn(job.part))) await this.#options.notes.remove(job.part);
      throw new Error('nobody wants the mix any more');
    }
    job.note = note;
    job.progress = changes.state === 'fetching' || changes.state === 'mixing' ? 0 : undefined;
    // Whoever sees the end may ask for the next mix at once.
    if (note.endedAt !== null) this.#forget(job);
  }

  async #write(job: Job, note: MixNote): Promise<void> {
    try {
      await this.#options.notes.write(job.part, note);
      job.isNoted = true;
    } catch (error) {
      const { roomId, name: part } = job.part;
      this.#options.log.warn('recording.mix_not_noted', { roomId, part, error });
    }
  }

  /** Returns false if another node that shares the directory has removed or replaced the note. */
  async #isOurs({ isNoted, isDropped, part }: Job): Promise<boolean> {
    return !isDropped && (!isNoted || (await this.#options.notes.isOwn(part)));
  }

  #drop(job: Job): void {
    job.isDropped = true;
    job.cancelled.abort();
    this.#forget(job);
  }

  #forget(job: Job): void {
    if (this.#jobs.get(keyIn(job.part)) === job) this.#jobs.delete(keyIn(job.part));
  }

  async #removeFile(part: PartName): Promise<boolean> {
    const directory = this.#directoryOf(part);
    const existed = await rm(join(directory, MIX_FILE)).then(
      () => true,
      () => false,
    );
    if (!existed) return false;
    // Fail unless they are empty.
    await rmdir(directory).catch(() => undefined);
    await rmdir(dirname(directory)).catch(() => undefined);

    return true;
  }

  #reasonOf({ byRequest }: Job, error: unknown, work: string): string {
    if (this.#isClosing) return 'the node was stopped';
    const shown = byRequest ? withoutAddress(error) : error;
    const text = shown instanceof Error ? shown.message : String(shown);

    return text.replaceAll(`${work}/`, '').slice(0, MAX_REASON);
  }

  #directoryOf({ roomId, name }: PartName): string {
    return join(this.#options.directory, roomId, name);
  }

  /** On the same disk, so that nothing is copied; hidden, and swept by garbage collection if a crash leaves it. */
  #workOf({ roomId, name }: PartName): string {
    return join(this.#options.directory, roomId, `.mix-${name}-${THIS_WRITER.run}`);
  }
}

function keyIn({ roomId, name }: PartName): string {
  return `${name} ${roomId}`;
}

function nameIn(directory: string, path: string): string {
  return path.replace(`${directory}/`, '');
}
