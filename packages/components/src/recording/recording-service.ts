import type { Log } from '@bloom/log';
import type { Processes } from '@bloom/processes';
import type { ComponentKind } from '@bloom/rooms';
import { type Clock, epochNow, sleep, systemClock } from '@bloom/time';
import { startGarbageCollection } from './garbage.js';
import { BEAT_MS, ORPHAN_MS } from './part-mark.js';
import type { S3Credentials } from '../s3/object-store.js';
import { Recorder, type RecordedPart } from './recorder.js';
import { bytesIn, Parts, startOf } from './parts.js';
import { readReport } from './report.js';
import { Mixes } from './mixes.js';
import { MixNotes } from './part-mix.js';
import { newsOf, type RecordingNews } from './recording-news.js';
import { type StoredPlace, UploadNotes } from './part-outcome.js';
import { extentOf } from './part-state.js';
import { recordingKind } from './recording-kind.js';
import { Uploads } from './uploads.js';

/** The key of an object has at most 1,024 bytes in S3; a note has room for as many characters. */
const MAX_PREFIX = 1_024;

export interface RecordingServiceOptions {
  /** `raw_recordings` */
  directory: string;
  /** Directory of the notes about uploaded recordings. */
  notesDirectory: string;
  /** Directory of the notes about mixes. */
  mixesDirectory: string;
  processes: Processes;
  /** From the environment. */
  s3: S3Credentials | null;
  pathPrefix: string | null;
  endpoint: string | null;
  log: Log;
  clock?: Clock;
  /** Called once for each recording whose component asked for it. */
  onNews?(news: RecordingNews): void;
  /** Keeps the room's webhook for news until the returned function is called. */
  hold?(roomId: string): () => void;
  /** Called when an upload is given up on. */
  onGivenUp?(part: RecordedPart): void;
  /** Built entry of the mixing process; defaults to the one beside its module. */
  mixerEntry?: URL;
}

/** This node's recording components, their uploads and mixes, and garbage collection. */
export class RecordingService {
  readonly #options: RecordingServiceOptions;
  readonly kind: ComponentKind;
  /** The recordings on disk. */
  readonly parts: Parts;
  readonly mixes: Mixes;
  readonly #mixNotes: MixNotes;
  readonly #notes: UploadNotes;
  readonly #uploads: Uploads;
  readonly #recorders = new Set<Recorder>();
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  #stopCollecting: (() => void) | undefined;
  /** True while the leftovers of earlier runs are being examined. */
  #resuming = false;

  constructor(options: RecordingServiceOptions) {
    this.#options = options;
    const { directory, notesDirectory, s3, pathPrefix, endpoint, log, clock = systemClock, onGivenUp } = options;
    const { onNews, hold } = options;
    this.#clock = clock;
    this.#notes = new UploadNotes(notesDirectory);
    this.#uploads = new Uploads({
      log,
      clock,
      onUploaded: (part, stored) => this.#note(part, stored),
      onCancelled: async (part) => void (await this.#notes.remove(part)),
      isUploaded: async (part) => (await this.#notes.read(part)) !== undefined,
      ...(onNews === undefined ? {} : { onNews }),
      ...(onGivenUp === undefined ? {} : { onGivenUp }),
    });
    this.#mixNotes = new MixNotes(options.mixesDirectory);
    this.mixes = new Mixes({
      ...options,
      clock,
      notes: this.#mixNotes,
      uploaded: this.#notes,
      stateOf: (part) => this.parts.stateOf(part),
    });
    this.parts = new Parts({
      directory,
      notes: this.#notes,
      mixes: this.mixes,
      clock,
      ownBucket: s3?.bucket,
      here: (path) => this.#doing(path),
      progress: (path) => this.#uploads.progress(path),
      cancel: (path) => this.#uploads.cancel(path),
    });
    this.kind = recordingKind({
      s3,
      pathPrefix,
      endpoint,
      record: (host, { target, prefix, byRequest, audioOnly, anyCodec, notify }) => {
        const told = notify ? hold?.(host.roomId) : undefined;
        const asks = notify ? { notify: host.componentId } : {};
        const recorder = new Recorder({
          host,
          baseDirectory: directory,
          clock,
          mediaNow: epochNow,
          destination: { bucket: target.bucket, prefix, ...(byRequest ? { byRequest } : {}), ...asks },
          audioOnly,
          anyCodec,
          finished: (part) =>
            this.#uploads.add(part, { target, prefix, byRequest, ...asks, ...(told === undefined ? {} : { told }) }),
          empty: (name) => {
            if (!notify) return;
            const { roomId, componentId } = host;
            onNews?.(newsOf({ roomId, name, files: [] }, { componentId, prefix }, 'nothing was recorded'));
            told?.();
          },
          closed: () => this.#recorders.delete(recorder),
        });
        this.#recorders.add(recorder);

        return recorder;
      },
    });
  }

  /**
   * Starts the background work: collects garbage every ten minutes, sparing `liveRooms`, the rooms of this node; marks
   * the parts being recorded or uploaded every ten seconds; and resumes the parts of earlier runs a minute after their
   * last mark.
   */
  collectGarbage(liveRooms: () => Promise<ReadonlySet<string>>): void {
    const { directory, log } = this.#options;
    if (this.#stopCollecting !== undefined) return;
    this.#stopCollecting = startGarbageCollection({
      directory,
      liveRooms,
      log,
      clock: this.#clock,
      // Any part, however old, may be the next one to resume.
      tidy: async () => {
        for (const notes of [this.#notes, this.#mixNotes]) await notes.tidy(this.#clock.wall());
      },
      isPending: (part) => this.#resuming || this.#uploads.isPending(part) || this.mixes.isUsing(part),
    });
    void this.#keep(this.#ending.signal);
  }

  #doing(directory: string): 'recording' | 'uploading' | undefined {
    if (this.#uploads.isPending(directory)) return 'uploading';

    return [...this.#recorders].some((recorder) => recorder.directory === directory) ? 'recording' : undefined;
  }

  /** Never rejects: without a note the recording is no longer listed. */
  async #note({ directory, roomId, name, files }: RecordedPart, stored: StoredPlace): Promise<void> {
    const report = await readReport(directory);
    const note = {
      ...(report === undefined ? { tracks: 0, seconds: 0 } : extentOf(report)),
      bytes: await bytesIn(directory, files),
      startedAt: startOf(name),
      uploadedAt: this.#clock.wall(),
      ...(stored.prefix.length > MAX_PREFIX ? {} : { stored }),
      ...(report?.continues === undefined ? {} : { continues: report.continues.part }),
    };
    await this.#notes.write({ roomId, name }, note).catch((error: unknown) => {
      this.#options.log.warn('recording.upload_not_noted', { roomId, part: name, error });
    });
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { directory, s3, endpoint, log } = this.#options;
    let lookedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      await Promise.all([...this.#recorders].map((recorder) => recorder.saveDraft()));
      await this.#uploads.beat();
      await this.mixes.beat();
      if (!this.#resuming && this.#clock.now() - lookedAtMs >= ORPHAN_MS) {
        lookedAtMs = this.#clock.now();
        this.#resuming = true;
        // Not awaited: it reads whole files, and recordings left unmarked for that long would be taken for orphans.
        void this.#uploads
          .resume(directory, s3 === null ? null : { ...s3, endpoint })
          .catch((error: unknown) => log.warn('recording.resume_failed', { error }))
          .finally(() => {
            this.#resuming = false;
          });
      }
      await sleep(BEAT_MS, { clock: this.#clock, signal });
    }
  }

  /**
   * Ends all recordings and mixes, and waits for uploads in progress within the given time. Files not uploaded by then
   * stay on disk. Idempotent.
   */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const endMs = this.#clock.now() + timeoutMs;
    const mixed = this.mixes.close({ timeoutMs });
    this.#stopCollecting?.();
    this.#ending.abort();
    const done = new AbortController();
    const closed = Promise.allSettled([...this.#recorders].map((recorder) => recorder.close())).then(() =>
      done.abort(),
    );
    // A hanging disk must not keep the node from exiting.
    await Promise.race([closed, sleep(timeoutMs, { clock: this.#clock, signal: done.signal })]);
    await this.#uploads.close({ timeoutMs: Math.max(0, endMs - this.#clock.now()) });
    await mixed;
  }
}
