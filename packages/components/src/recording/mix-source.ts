import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RoomError } from '@bloom/rooms';
import type { Clock } from '@bloom/time';
import { ComponentError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import { openStore, type S3Target } from '../s3/object-store.js';
import { keyOf, type UploaderOptions } from '../s3/upload-files.js';
import { freeBytes, shortage } from './free-space.js';
import { fetchTracks, linkTracks } from './mix-tracks.js';
import { readMark } from './part-mark.js';
import type { PartName } from './part-notes.js';
import type { StoredPlace, UploadNotes } from './part-outcome.js';
import type { PartState } from './part-state.js';
import { bytesIn, PART_NAME } from './parts.js';
import { PartsProgress } from './parts-progress.js';
import { readReport, REPORT_FILE } from './report.js';
import { prefixOf } from './upload-target.js';

/** Time limit for the tracks of one uploaded part to arrive. */
const FETCH_MS = 4 * 3_600_000;
/** A recording has one part per move of its room. */
export const MAX_PARTS = 100;

export interface MixSourceOptions {
  /** `raw_recordings` */
  directory: string;
  /** Notes about uploaded recordings. */
  uploaded: UploadNotes;
  pathPrefix: string | null;
  clock: Clock;
  open?: UploaderOptions['open'];
  /** Returns the bytes that can still be written to the disk of a directory; defaults to the system's answer. */
  freeBytes?(directory: string): Promise<number>;
}

/** A recording to gather. */
export interface Gathering {
  part: PartName;
  /** Parts that continue it, in order. */
  later: readonly string[];
  /** Leaves out parts that are neither on this node nor in the bucket; `onMissing` names them. */
  skipMissing: boolean;
  onMissing(name: string): void;
  target: S3Target | null;
  /** The credentials came with the request: their bucket is never shown or logged. */
  byRequest: boolean;
  signal: AbortSignal;
  /** Called before tracks are fetched from the bucket. */
  fetching(): Promise<void>;
  /** Called with the share of the recording that has been gathered, 0..1, while tracks are fetched. */
  onProgress(share: number): void;
}

/** A recording while it is gathered. */
interface Job extends Gathering {
  progress: PartsProgress;
}

/** Finds the tracks of recordings, on the disk or in their bucket. */
export class MixSource {
  readonly #options: MixSourceOptions;

  constructor(options: MixSourceOptions) {
    this.#options = options;
  }

  /** Checks that the tracks can be read. @throws ComponentError `IN_PROGRESS`, RoomError `INVALID_OPTIONS` */
  async check(part: PartName, target: S3Target | null, state: PartState): Promise<void> {
    const what = `Recording ${part.roomId}/${part.name}`;
    const note = await this.#options.uploaded.read(part);
    if (note !== undefined) return void checkStore(what, note.stored, target);
    const hasReport = await exists(join(this.#directoryOf(part), REPORT_FILE));
    // A failed one without a report stays so.
    if (!hasReport && state !== 'failed') {
      throw new ComponentError('IN_PROGRESS', `${what} is being completed after a crash; it will take a minute`);
    }
  }

  /** Returns the names of the parts before this one, as far as reports on this disk say. */
  async earlier(part: PartName): Promise<string[]> {
    const found: string[] = [];
    for (let at = part.name; found.length < MAX_PARTS; ) {
      const name = (await readReport(this.#directoryOf({ ...part, name: at })))?.continues?.part;
      const isNew = typeof name === 'string' && PART_NAME.test(name) && name !== part.name && !found.includes(name);
      if (!isNew) break;
      found.push(name);
      at = name;
    }

    return found;
  }

  /**
   * Brings the tracks of a part, and of those before and after it, into directories below `work`. Returns the
   * directories in order, each named after its part. What came before a missing part is not known without its report.
   * @throws ComponentError `BAD_RECORDING` when one is missing, `MIX_FAILED`, `DOWNLOAD_FAILED`
   */
  async gather(gathering: Gathering, work: string): Promise<string[]> {
    const { part, later, onProgress } = gathering;
    const earlier = await this.earlier(part);
    const progress = new PartsProgress(1 + earlier.length + later.length, onProgress);
    const job = { ...gathering, progress };
    const first = await this.#bring(job, part, work);
    const found = new Map([[part.name, first]]);
    const before: string[] = [];
    for (let at = first; ; ) {
      const name = (await readReport(at))?.continues?.part;
      if (name === undefined) break;
      const isNew = typeof name === 'string' && PART_NAME.test(name) && !found.has(name);
      if (!isNew || found.size >= MAX_PARTS) throw new ComponentError('BAD_RECORDING', `${at} continues no other part`);
      progress.next();
      if (!earlier.includes(name)) progress.found();
      const next = await this.#bringUnlessMissing(job, name, work);
      if (next === undefined) break;
      at = next;
      found.set(name, at);
      before.unshift(at);
    }
    const after: string[] = [];
    for (const name of later) {
      if (!PART_NAME.test(name) || found.has(name) || found.size >= MAX_PARTS) {
        throw new ComponentError('BAD_RECORDING', `${name} cannot continue this recording`);
      }
      progress.next();
      const at = await this.#bringUnlessMissing(job, name, work);
      if (at === undefined) continue;
      found.set(name, at);
      after.push(at);
    }

    return [...before, first, ...after];
  }

  /** Returns the prefix of the recording's objects. */
  async prefixOf(part: PartName, { bucket }: S3Target): Promise<string> {
    const stored = (await this.#options.uploaded.read(part))?.stored ?? (await readMark(this.#directoryOf(part)));

    return stored?.bucket === bucket ? stored.prefix : prefixOf(this.#options.pathPrefix, null);
  }

  /** Returns why a mix that still writes so many bytes does not fit on the disk; undefined if it does. */
  async shortage(bytes: number): Promise<ComponentError | undefined> {
    return shortage(await this.#free(), bytes);
  }

  /** Brings the part that the caller has named. */
  async #bring(job: Job, part: PartName, work: string): Promise<string> {
    const { uploaded } = this.#options;
    const to = join(work, part.name);
    await makeFolder(to);
    if ((await uploaded.read(part)) === undefined) {
      const directory = this.#directoryOf(part);
      const files = await readdir(directory).catch(() => []);
      // Of the movie: the tracks are linked.
      await this.#reserve(await bytesIn(directory, files));
      await linkTracks(directory, to);
    }
    const note = await uploaded.read(part);
    if (note === undefined) return to;
    // An upload may have removed some of the files meanwhile.
    await rm(to, { recursive: true, force: true });
    await makeFolder(to);
    const store = checkStore(`Recording ${part.roomId}/${part.name}`, note.stored, job.target);
    const prefix = note.stored?.prefix ?? prefixOf(this.#options.pathPrefix, null);
    // Of the tracks and the movie.
    await this.#reserve(2 * note.bytes);
    await this.#fetch(job, { part, to, store, prefix, bytes: note.bytes });

    return to;
  }

  /** Returns undefined for a part that is missing and may be left out. */
  async #bringUnlessMissing(job: Job, name: string, work: string): Promise<string | undefined> {
    const to = join(work, name);
    const missing = await this.#bringOther(job, name, to);
    if (missing === undefined) return to;
    if (!job.skipMissing) throw new ComponentError('BAD_RECORDING', missing);
    await rm(to, { recursive: true, force: true });
    job.onMissing(name);

    return undefined;
  }

  /** Brings an earlier or later part, which another node may have recorded and uploaded. Returns why it is missing. */
  async #bringOther(job: Job, name: string, to: string): Promise<string | undefined> {
    const { part: asked, target, byRequest } = job;
    const part = { roomId: asked.roomId, name };
    const isHere = await exists(this.#directoryOf(part));
    try {
      if (isHere || (await this.#options.uploaded.read(part)) !== undefined) {
        await this.#bring(job, part, dirname(to));
        if ((await readReport(to)) !== undefined) return undefined;
        throw new ComponentError('BAD_RECORDING', `${name}, a part of this recording, is not complete yet`);
      }
      if (target === null) return reasonWithout(name, 'and no bucket is known');
      await makeFolder(to);
      // All parts of a recording have the same options.
      const prefix = await this.prefixOf(asked, target);
      await this.#fetch(job, { part, to, store: target, prefix, bytes: Math.floor((await this.#free()) / 2) });

      return undefined;
    } catch (error) {
      const cause = error instanceof ComponentError ? (error.cause as Error | undefined)?.name : undefined;
      const bucket = byRequest ? 'the bucket of the request' : `the bucket ${target?.bucket}`;
      if (cause === 'AccessDenied') throw new ComponentError('BAD_RECORDING', reasonOfDenial(name, bucket), { cause });
      if (cause !== 'NoSuchKey') throw error;

      return reasonWithout(name, `and not, or not whole, in ${bucket}`);
    }
  }

  async #fetch(
    { signal, fetching, progress }: Job,
    from: { part: PartName; to: string; store: S3Target; prefix: string; bytes: number },
  ): Promise<void> {
    const { clock, open = openStore } = this.#options;
    const { part, to, store, prefix, bytes } = from;
    await fetching();
    const overdue = new AbortController();
    const timer = clock.setTimeout(() => overdue.abort(), FETCH_MS);
    const bucket = await open(store);
    try {
      await fetchTracks(bucket, to, {
        keyOf: (file) => keyOf(prefix, part.roomId, part.name, file),
        bytes,
        signal: AbortSignal.any([signal, overdue.signal]),
        onProgress: (share) => progress.part(share),
      });
    } finally {
      clock.clearTimeout(timer);
      bucket.close();
    }
  }

  /** @throws ComponentError `MIX_FAILED` unless the disk has space for so many bytes */
  async #reserve(bytes: number): Promise<void> {
    const short = await this.shortage(bytes);
    if (short !== undefined) throw short;
  }

  async #free(): Promise<number> {
    const { directory, freeBytes: free = freeBytes } = this.#options;

    // A system that does not say must not end mixes.
    return free(directory).catch(() => Number.POSITIVE_INFINITY);
  }

  #directoryOf({ roomId, name }: PartName): string {
    return join(this.#options.directory, roomId, name);
  }
}

/** Its node may have been lost with its disk. */
function reasonWithout(name: string, why: string): string {
  return (
    `${name}, a part of this recording, is not on this node ${why}: the node that recorded it has not uploaded it; ` +
    'if it is lost, ask for a mix without it (skipMissing)'
  );
}

/**
 * Returns the store of an uploaded recording, whose place notes of earlier releases do not say.
 * @throws RoomError `INVALID_OPTIONS` when the credentials are not those of its bucket
 */
function checkStore(what: string, stored: StoredPlace | undefined, target: S3Target | null): S3Target {
  const isThere = target !== null && (stored === undefined || stored.bucket === target.bucket);
  if (isThere) return target;
  throw new RoomError(
    'INVALID_OPTIONS',
    `${what} was uploaded to a bucket for which this node has no credentials: send them with the request`,
  );
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** It may exist, and credentials may be wrong, so a mix without it would be a guess. */
function reasonOfDenial(name: string, bucket: string): string {
  return (
    `${name}, a part of this recording, is not on this node, and the store denies access to it in ${bucket}. Stores ` +
    'answer so for missing objects too, unless the credentials may list the bucket (s3:ListBucket)'
  );
}
