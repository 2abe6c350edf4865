import type { Log } from '@bloom/log';
import type { ComponentKind } from '@bloom/rooms';
import { systemClock, type Clock } from '../clock.js';
import { startGarbageCollection } from './garbage.js';
import type { S3Credentials } from './object-store.js';
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
  readonly kind: ComponentKind;
  readonly #uploads: Uploads;
  readonly #recorders = new Set<Recorder>();
  readonly #clock: Clock;
  #stopCollecting: (() => void) | undefined;

  constructor(private readonly options: RecordingServiceOptions) {
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
          finished: (part) => this.#uploads.add(part, target, prefix),
          closed: () => this.#recorders.delete(recorder),
        });
        this.#recorders.add(recorder);

        return recorder;
      },
    });
  }

  /** From now on every ten minutes; `liveRooms` are those of this node. Uploads that a former run left behind go on. */
  collectGarbage(liveRooms: () => Promise<ReadonlySet<string>>): void {
    const { directory, log, s3, endpoint } = this.options;
    if (s3 !== null) {
      this.#uploads.resume(directory, { ...s3, endpoint }).catch((error: unknown) => {
        log.warn('recording.resume_failed', { error });
      });
    }
    this.#stopCollecting ??= startGarbageCollection({
      directory,
      liveRooms,
      log,
      clock: this.#clock,
      isPending: (part) => this.#uploads.isPending(part),
    });
  }

  /** Ends what is being recorded and waits for uploads on their way; what is not up by then stays on the disk. Idempotent. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#stopCollecting?.();
    await Promise.all([...this.#recorders].map((recorder) => recorder.close()));
    await this.#uploads.close({ timeoutMs });
  }
}
