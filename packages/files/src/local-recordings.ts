import { lstat, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MediaFileError } from './errors.js';
import { isDirectoryItself, leavesDirectory, openServedFile, type ServedFile } from './served-file.js';
import type { RecordingStore } from './stores.js';

export interface LocalRecordingsOptions {
  /** `<resources>/recordings` */
  directory: string;
  /** Returns true while a recording is still being made. It is then neither listed nor served nor removed here. */
  isLive: (id: string) => boolean;
}

/** A playlist's first date is within this many bytes. */
const PLAYLIST_HEAD_BYTES = 64 * 1024;
const PLAYLIST_END = '#EXT-X-ENDLIST';

/** Recordings in a directory of this node, each in a subdirectory. */
export class LocalRecordings implements RecordingStore {
  readonly #options: LocalRecordingsOptions;
  #announce: (id: string) => void = () => undefined;
  #ended: (id: string) => void = () => undefined;

  constructor(options: LocalRecordingsOptions) {
    this.#options = options;
  }

  async list(): Promise<{ ids: string[]; unreachable: string[] }> {
    const ids = await this.ids();

    return { ids: ids.filter((id) => !this.isLive(id)), unreachable: [] };
  }

  /** Returns the ids of all recordings, including those still being made. @throws MediaFileError NOT_FOUND */
  async ids(): Promise<string[]> {
    try {
      const entries = await readdir(this.#options.directory, { withFileTypes: true });

      return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    } catch (cause) {
      if (isMissing(cause)) return [];
      throw new MediaFileError('NOT_FOUND', 'Unable to obtain recordings', { cause });
    }
  }

  /**
   * Returns when a recording started in Unix milliseconds; undefined when it is not here or still being made.
   * @throws MediaFileError INVALID_NAME
   */
  async startOf(id: string): Promise<number | undefined> {
    checkId(id);

    return this.#directoryOf(id).then(startIn, () => undefined);
  }

  /** Returns the start of each recording with one of these ids, including those still being made. */
  async startsOf(ids: readonly string[]): Promise<Map<string, number>> {
    const starts = new Map<string, number>();
    const own = new Set(await this.ids());
    for (const id of ids) if (own.has(id)) starts.set(id, await startIn(join(this.#options.directory, id)));

    return starts;
  }

  async remove(id: string): Promise<void> {
    const directory = await this.#directoryOf(id);

    await rm(directory, { recursive: true, force: true });
  }

  async open(id: string, fileName: string): Promise<ServedFile> {
    checkId(id);
    if (leavesDirectory(fileName)) throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${fileName}`);

    return openServedFile(await this.#directoryOf(id), fileName);
  }

  isLive(id: string): boolean {
    return this.#options.isLive(id);
  }

  /** Makes way for a new recording with that id, here and, once announced, on the other nodes. */
  async begin(id: string): Promise<void> {
    await this.setAside(id);
    this.#announce(id);
  }

  /** Calls `announce` whenever a recording begins. */
  onBegin(announce: (id: string) => void): void {
    this.#announce = announce;
  }

  /** Reports that a recording is complete: its stream has ended, or the process recording it was killed. */
  end(id: string): void {
    this.#ended(id);
  }

  /** Calls `ended` whenever a recording is complete. */
  onEnd(ended: (id: string) => void): void {
    this.#ended = ended;
  }

  /** Renames a recording whose id is taken by a newer one to `<id>-<UTC start>`; does nothing if there is none. */
  async setAside(id: string): Promise<void> {
    checkId(id);
    const directory = join(this.#options.directory, id);
    // An empty directory is not a recording.
    if (await succeeds(rmdir(directory))) return;
    const found = await lstat(directory).catch(() => undefined);
    if (found?.isDirectory() !== true) return;
    const stamp = new Date(await startIn(directory)).toISOString().replace(/[-:]|\.\d+/g, '');
    for (let n = 1; ; n += 1) {
      const target = join(this.#options.directory, `${id}-${stamp}${n === 1 ? '' : `-${n}`}`);
      if (await succeeds(lstat(target))) continue;
      await rename(directory, target).catch((error: unknown) => {
        // Already removed.
        if (!isMissing(error)) throw error;
      });
      return;
    }
  }

  /**
   * Does the same, but only for a finished recording: if nodes share the directory, a growing one may be the newer one
   * itself. Returns whether it was renamed.
   */
  async setAsideFinished(id: string): Promise<boolean> {
    checkId(id);
    if (this.isLive(id) || !(await hasEnded(join(this.#options.directory, id)))) return false;
    await this.setAside(id);

    return true;
  }

  async #directoryOf(id: string): Promise<string> {
    checkId(id);

    const missing = new MediaFileError('NOT_FOUND', `Recording ${id} not found`);
    // Only direct subdirectories are recordings.
    if (id.includes('/') || this.isLive(id)) throw missing;

    const directory = join(this.#options.directory, id);
    const found = await lstat(directory).catch(() => undefined);
    if (found?.isDirectory() !== true) throw missing;

    return directory;
  }
}

/** Returns the date of the first segment or, without a playlist, the time of the oldest file. */
async function startIn(directory: string): Promise<number> {
  const names = await readdir(directory).catch(() => []);
  const dates: number[] = [];
  for (const name of names) {
    if (!name.endsWith('.m3u8')) continue;
    const date = /^#EXT-X-PROGRAM-DATE-TIME:(.*)$/m.exec(await textOf(join(directory, name), PLAYLIST_HEAD_BYTES))?.[1];
    if (date !== undefined && !Number.isNaN(Date.parse(date))) dates.push(Date.parse(date));
  }
  if (dates.length > 0) return Math.min(...dates);
  let oldest = Number.POSITIVE_INFINITY;
  for (const name of ['.', ...names]) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    if (found !== undefined) oldest = Math.min(oldest, found.mtimeMs);
  }

  return Number.isFinite(oldest) ? oldest : 0;
}

async function hasEnded(directory: string): Promise<boolean> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.endsWith('.m3u8')) continue;
    if ((await textOf(join(directory, name), -PLAYLIST_END.length - 1)).trimEnd() === PLAYLIST_END) return true;
  }

  return false;
}

/** Reads the first bytes of a file, or the last ones if the length is negative; empty when it cannot be read. */
async function textOf(path: string, length: number): Promise<string> {
  const handle = await open(path).catch(() => undefined);
  if (handle === undefined) return '';
  try {
    const { size } = await handle.stat();
    const bytes = Buffer.alloc(Math.min(size, Math.abs(length)));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, length < 0 ? size - bytes.length : 0);

    return bytes.toString('latin1', 0, bytesRead);
  } catch {
    return '';
  } finally {
    await handle.close();
  }
}

function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/**
 * Checks that an id names something below the recordings directory, neither the directory itself nor anything outside.
 */
function checkId(id: string): void {
  if (leavesDirectory(id) || isDirectoryItself(id)) {
    throw new MediaFileError('INVALID_NAME', `Invalid recording id, got: ${id}`);
  }
}

function isMissing(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}
