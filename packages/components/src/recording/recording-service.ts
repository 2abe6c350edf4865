import type { Log } from '@bloom/log';
import type { ComponentKind } from '@bloom/rooms';
import { type Clock, epochNow, sleep, systemClock } from '@bloom/time';
import { startGarbageCollection } from './garbage.js';
import { BEAT_MS, ORPHAN_MS } from './part-mark.js';
import type { S3Credentials } from '../s3/object-store.js';
import { Recorder, type RecordedPart } from './recorder.js';
import { recordingKind } from './recording-kind.js';
import { Uploads } from './uploads.js';

export interface RecordingServiceOptions {
  /** `raw_recordings` */
  directory: string;
  /** From the environment. */
  s3: S3Credentials | null;
  pathPrefix: string | null;
  endpoint: string | null;
  log: Log;
  clock?: Clock;
  /** Called when an upload is given up on. */
  onGivenUp?(part: RecordedPart): void;
}

/** This node's recording components, their uploads, and garbage collection. */
export class RecordingService {
  readonly #options: RecordingServiceOptions;
  readonly kind: ComponentKind;
  readonly #uploads: Uploads;
  readonly #recorders = new Set<Recorder>();
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  #stopCollecting: (() => void) | undefined;
  /** True while the leftovers of earlier runs are being examined. */
  #resuming = false;

  constructor(options: RecordingServiceOptions) {
    this.#options = options;
    const { directory, s3, pathPrefix, endpoint, log, clock = systemClock, onGivenUp } = options;
    this.#clock = clock;
    this.#uploads = new Uploads({ log, clock, ...(onGivenUp === undefined ? {} : { onGivenUp }) });
    this.kind = recordingKind({
      s3,
      pathPrefix,
      endpoint,
      record: (host, target, prefix) => {
        const recorder = new Recorder({
          host,
          baseDirectory: directory,
          clock,
          mediaNow: epochNow,
          destination: { bucket: target.bucket, prefix },
          finished: (part) => this.#uploads.add(part, target, prefix),
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
      isPending: (part) => this.#resuming || this.#uploads.isPending(part),
    });
    void this.#keep(this.#ending.signal);
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { directory, s3, endpoint, log } = this.#options;
    let lookedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      await Promise.all([...this.#recorders].map((recorder) => recorder.saveDraft()));
      await this.#uploads.beat();
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
   * Ends all recordings and waits for uploads in progress within the given time. Files not uploaded by then stay on
   * disk. Idempotent.
   */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const endMs = this.#clock.now() + timeoutMs;
    this.#stopCollecting?.();
    this.#ending.abort();
    const done = new AbortController();
    const closed = Promise.allSettled([...this.#recorders].map((recorder) => recorder.close())).then(() =>
      done.abort(),
    );
    // A hanging disk must not keep the node from exiting.
    await Promise.race([closed, sleep(timeoutMs, { clock: this.#clock, signal: done.signal })]);
    await this.#uploads.close({ timeoutMs: Math.max(0, endMs - this.#clock.now()) });
  }
}
