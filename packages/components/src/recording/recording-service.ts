import type { Log } from '@bloom/log';
import type { ComponentKind } from '@bloom/rooms';
import { type Clock, sleep, systemClock } from '@bloom/time';
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
  /** A recording did not reach its bucket in all the time there was. */
  onGivenUp?(part: RecordedPart): void;
}

/** All that a node has to do with recordings: their components, their uploads, and the files that are left over. */
export class RecordingService {
  readonly #options: RecordingServiceOptions;
  readonly kind: ComponentKind;
  readonly #uploads: Uploads;
  readonly #recorders = new Set<Recorder>();
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  #stopCollecting: (() => void) | undefined;

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
   * From now on: every ten minutes the garbage, where `liveRooms` are those of this node; every ten seconds a sign of life on
   * what is being recorded and uploaded; and what another run left behind is taken over a minute after its last one.
   */
  collectGarbage(liveRooms: () => Promise<ReadonlySet<string>>): void {
    const { directory, log } = this.#options;
    if (this.#stopCollecting !== undefined) return;
    this.#stopCollecting = startGarbageCollection({
      directory,
      liveRooms,
      log,
      clock: this.#clock,
      isPending: (part) => this.#uploads.isPending(part),
    });
    void this.#keep(this.#ending.signal);
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { directory, s3, endpoint, log } = this.#options;
    let lookedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      await Promise.all([...this.#recorders].map((recorder) => recorder.saveDraft()));
      await this.#uploads.beat();
      if (this.#clock.now() - lookedAtMs >= ORPHAN_MS) {
        lookedAtMs = this.#clock.now();
        await this.#uploads.resume(directory, s3 === null ? null : { ...s3, endpoint }).catch((error: unknown) => {
          log.warn('recording.resume_failed', { error });
        });
      }
      await sleep(BEAT_MS, { clock: this.#clock, signal });
    }
  }

  /**
   * Ends what is being recorded and waits for uploads on their way, all within that time; what is not up by then stays on
   * the disk. Idempotent.
   */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const endMs = this.#clock.now() + timeoutMs;
    this.#stopCollecting?.();
    this.#ending.abort();
    const done = new AbortController();
    const closed = Promise.allSettled([...this.#recorders].map((recorder) => recorder.close())).then(() =>
      done.abort(),
    );
    // A disk that does not answer any more does not keep the node from ending.
    await Promise.race([closed, sleep(timeoutMs, { clock: this.#clock, signal: done.signal })]);
    await this.#uploads.close({ timeoutMs: Math.max(0, endMs - this.#clock.now()) });
  }
}
