import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MediaFileError } from './errors.js';
import { isDirectoryItself, leavesDirectory, openServedFile, type ServedFile } from './served-file.js';
import type { RecordingStore } from './stores.js';

export interface LocalRecordingsOptions {
  /** `<resources>/recordings` */
  directory: string;
  /** Whether a recording is still being made, so that it is neither listed nor served nor removed here. */
  isLive: (id: string) => boolean;
}

/** The recordings in a directory of this instance, one sub-directory each. */
export class LocalRecordings implements RecordingStore {
  readonly #options: LocalRecordingsOptions;

  constructor(options: LocalRecordingsOptions) {
    this.#options = options;
  }

  async list(): Promise<{ ids: string[]; unreachable: string[] }> {
    try {
      const entries = await readdir(this.#options.directory, { withFileTypes: true });
      const ids = entries.filter((entry) => entry.isDirectory() && !this.#options.isLive(entry.name));

      return { ids: ids.map((entry) => entry.name), unreachable: [] };
    } catch (cause) {
      if (isMissing(cause)) return { ids: [], unreachable: [] };
      throw new MediaFileError('NOT_FOUND', 'Unable to obtain recordings', { cause });
    }
  }

  /** @throws MediaFileError INVALID_NAME */
  async holds(id: string): Promise<boolean> {
    checkId(id);

    return this.#directoryOf(id).then(
      () => true,
      () => false,
    );
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

  async #directoryOf(id: string): Promise<string> {
    checkId(id);

    const missing = new MediaFileError('NOT_FOUND', `Recording ${id} not found`);
    // Only names directly below: what is deeper is a part of a recording, no recording.
    if (id.includes('/') || this.#options.isLive(id)) throw missing;

    const directory = join(this.#options.directory, id);
    const stat = await lstat(directory).catch(() => undefined);
    if (stat?.isDirectory() !== true) throw missing;

    return directory;
  }
}

/** An id is a name below the directory of recordings, neither that directory itself nor anything outside. */
function checkId(id: string): void {
  if (leavesDirectory(id) || isDirectoryItself(id)) {
    throw new MediaFileError('INVALID_NAME', `Invalid recording id, got: ${id}`);
  }
}

function isMissing(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}
