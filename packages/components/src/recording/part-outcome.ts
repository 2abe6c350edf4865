/**
 * What became of parts: a note about an uploaded one, which outlives its files, and the reason of an abandoned one,
 * which lies beside them.
 */
import { open, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.js';
import { directories } from './garbage.js';

const FAILURE_FILE = '.failed.json';
const NOTE = /^(part_[\w.-]{1,64})\.json$/;
/** Larger notes were not written here. */
const MAX_NOTE_BYTES = 4_096;
const MAX_REASON = 500;
/** Notes about uploads are kept for a week. */
export const NOTE_MS = 7 * 24 * 3_600_000;
/** Maximum number of notes; the oldest are removed first. */
export const MAX_NOTES = 10_000;

export interface UploadNote {
  tracks: number;
  seconds: number;
  bytes: number;
  /** Unix milliseconds. */
  startedAt: number;
  uploadedAt: number;
}

export interface PartName {
  roomId: string;
  /** `part_<UTC timestamp>` */
  name: string;
}

/** The notes about uploaded parts, one file each, in a directory of their own. */
export class UploadNotes {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes the note atomically. @throws NodeJS.ErrnoException when the system refuses */
  async write(part: PartName, note: UploadNote): Promise<void> {
    await makeFolder(join(this.#directory, part.roomId));
    await writeFile(`${this.#pathOf(part)}.new`, JSON.stringify(note));
    await rename(`${this.#pathOf(part)}.new`, this.#pathOf(part));
  }

  /** Returns undefined without a valid note. */
  async read(part: PartName): Promise<UploadNote | undefined> {
    const { tracks, seconds, bytes, startedAt, uploadedAt } = (await readJson(this.#pathOf(part))) ?? {};
    if (!isCount(tracks) || !isCount(seconds) || !isCount(bytes)) return undefined;
    if (!isCount(startedAt) || !isCount(uploadedAt)) return undefined;

    return { tracks, seconds, bytes, startedAt, uploadedAt };
  }

  /** Returns the parts that have notes, in one room or in all. */
  async parts(roomId?: string): Promise<PartName[]> {
    const found: PartName[] = [];
    for (const room of roomId === undefined ? await directories(this.#directory) : [roomId]) {
      for (const file of await readdir(join(this.#directory, room)).catch(() => [])) {
        const name = NOTE.exec(file)?.[1];
        if (name !== undefined) found.push({ roomId: room, name });
      }
    }

    return found;
  }

  /** Returns whether there was one. */
  async remove(part: PartName): Promise<boolean> {
    const existed = await rm(this.#pathOf(part)).then(
      () => true,
      () => false,
    );
    await rmdir(join(this.#directory, part.roomId)).catch(() => undefined);

    return existed;
  }

  /** Removes old notes, and the oldest of too many. */
  async tidy(nowMs: number): Promise<void> {
    const parts = (await this.parts()).toSorted((a, b) => (a.name < b.name ? 1 : -1));
    for (const [i, part] of parts.entries()) {
      const { mtimeMs } = await stat(this.#pathOf(part)).catch(() => ({ mtimeMs: nowMs }));
      if (i >= MAX_NOTES || nowMs - mtimeMs > NOTE_MS) await this.remove(part);
    }
  }

  #pathOf({ roomId, name }: PartName): string {
    return join(this.#directory, roomId, `${name}.json`);
  }
}

/** Never rejects: on a full disk, the part counts as finished. */
export async function writeFailure(directory: string, reason: string): Promise<void> {
  const text = JSON.stringify({ reason: reason.slice(0, MAX_REASON) });
  await writeFile(join(directory, FAILURE_FILE), text).catch(() => undefined);
}

/** Returns why the upload of a part was given up on; undefined if it was not. */
export async function readFailure(directory: string): Promise<string | undefined> {
  const reason = (await readJson(join(directory, FAILURE_FILE)))?.['reason'];

  return typeof reason === 'string' ? reason : undefined;
}

async function readJson(path: string): Promise<Record<string, unknown> | undefined> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const buffer = Buffer.alloc(MAX_NOTE_BYTES);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    const value: unknown = JSON.parse(buffer.toString('utf8', 0, bytesRead));

    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
