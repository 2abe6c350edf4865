import { open, readdir, rename, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.js';
import { directories } from './garbage.js';

const NOTE = /^(part_[\w.-]{1,64})\.json$/;
/** Larger notes were not written here. */
const MAX_NOTE_BYTES = 8_192;
/** Notes are kept for a week. */
export const NOTE_MS = 7 * 24 * 3_600_000;
/** Maximum number of notes; the oldest are removed first. */
export const MAX_NOTES = 10_000;

export interface PartName {
  roomId: string;
  /** `part_<UTC timestamp>` */
  name: string;
}

/** Notes about parts, one file each, in a directory of their own: they outlive the files of the parts. */
export class PartNotes<Note extends object> {
  readonly #directory: string;
  readonly #parse: (value: Readonly<Record<string, unknown>>) => Note | undefined;

  /** `parse` returns undefined for what is not a note. */
  constructor(directory: string, parse: (value: Readonly<Record<string, unknown>>) => Note | undefined) {
    this.#directory = directory;
    this.#parse = parse;
  }

  /** Writes the note atomically. @throws NodeJS.ErrnoException when the system refuses */
  async write(part: PartName, note: Note): Promise<void> {
    await makeFolder(join(this.#directory, part.roomId));
    await writeFile(`${this.#pathOf(part)}.new`, JSON.stringify(note));
    await rename(`${this.#pathOf(part)}.new`, this.#pathOf(part));
  }

  /** Returns undefined without a valid note. */
  async read(part: PartName): Promise<Note | undefined> {
    const value = await readJson(this.#pathOf(part));

    return value === undefined ? undefined : this.#parse(value);
  }

  /** Returns true only if there certainly is no note: one that cannot be read now may be readable the next time. */
  isMissing(part: PartName): Promise<boolean> {
    return stat(this.#pathOf(part)).then(
      () => false,
      ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
    );
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

  /** Returns when the note was written or touched last, Unix milliseconds; undefined without a note. */
  async touchedAt(part: PartName): Promise<number | undefined> {
    const found = await stat(this.#pathOf(part)).catch(() => undefined);

    return found === undefined ? undefined : Math.floor(found.mtimeMs);
  }

  async touch(part: PartName, nowMs: number): Promise<void> {
    await utimes(this.#pathOf(part), nowMs / 1_000, nowMs / 1_000).catch(() => undefined);
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

/** Returns undefined unless the file is a short JSON object. */
export async function readJson(path: string): Promise<Record<string, unknown> | undefined> {
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

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
