import { lstat, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pLimit from 'p-limit';
import { type Clock } from '@bloom/time';
import { directories } from './garbage.js';
import { ORPHAN_MS, readMark, touchedAt } from './part-mark.js';
import { type ListedMix, MIX_FILE, type PartMixes } from './part-mix.js';
import type { PartName } from './part-notes.js';
import { readFailure, type UploadNotes } from './part-outcome.js';
import { extentOf, judgePart, type PartState } from './part-state.js';
import { isGone } from './part-writer.js';
import { readReport, REPORT_FILE } from './report.js';

/** Names of parts; times in them sort as text. */
export const PART_NAME = /^part_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/;
/** Maximum number of parts whose files are read at the same time. */
const READS = 8;

/** One recording of a room. */
export interface ListedPart {
  roomId: string;
  part: string;
  state: PartState;
  /** Why it failed. */
  reason?: string;
  /** Share of the files that have arrived, 0 to 1; only while this node uploads them. */
  progress?: number;
  tracks: number;
  /** Length up to the end of the last track. */
  seconds: number;
  bytes: number;
  /** Unix milliseconds. */
  startedAt: number;
  /** Unix milliseconds; null until the upload is complete. */
  uploadedAt: number | null;
  /** Name of the part that it continues, which another node has recorded. */
  continues?: string;
  /** Present once somebody has asked for it. */
  mix?: ListedMix;
  /** This node is recording, uploading or mixing it, so it knows better than others. */
  isHere: boolean;
}

export interface PartQuery {
  /** Maximum number. */
  limit: number;
  /** Lists only parts of this room. */
  roomId?: string;
  /** Lists only parts after this one, in the order of the list. */
  after?: { roomId: string; part: string };
}

export interface PartsOptions {
  /** `raw_recordings` */
  directory: string;
  notes: UploadNotes;
  clock: Clock;
  /** Bucket of this node's own credentials. */
  ownBucket: string | undefined;
  /** What this process is doing with the part in this directory. */
  here(directory: string): 'recording' | 'uploading' | undefined;
  /** Share of the part's files that have been uploaded. */
  progress(directory: string): number | undefined;
  mixes: PartMixes;
  /** Ends the upload of a part, and removes what has been uploaded. */
  cancel(directory: string): void;
}

/** The recordings of rooms on this node, as far as its disk knows them. */
export class Parts {
  readonly #options: PartsOptions;

  constructor(options: PartsOptions) {
    this.#options = options;
  }

  /** Lists recordings, newest first. `isWhole` is false if there are more. */
  async list({ limit, roomId, after }: PartQuery): Promise<{ parts: ListedPart[]; isWhole: boolean }> {
    const names = new Map<string, PartName>();
    for (const part of [...(await this.#onDisk(roomId)), ...(await this.#options.notes.parts(roomId))]) {
      const isNext = after === undefined || comparePlaces({ roomId: part.roomId, part: part.name }, after) > 0;
      if (isNext && PART_NAME.test(part.name)) names.set(`${part.name} ${part.roomId}`, part);
    }
    const wanted = [...names.values()].toSorted((a, b) =>
      comparePlaces({ roomId: a.roomId, part: a.name }, { roomId: b.roomId, part: b.name }),
    );
    const parts: ListedPart[] = [];
    const reads = pLimit(READS);
    let at = 0;
    // Some are empty or gone.
    while (parts.length < limit && at < wanted.length) {
      const next = wanted.slice(at, at + limit - parts.length);
      at += next.length;
      const read = await Promise.all(next.map((part) => reads(() => this.#readWithMix(part))));
      for (const part of read) if (part !== undefined) parts.push(part);
    }

    return { parts, isWhole: at >= wanted.length };
  }

  /** Returns the state of a recording; undefined if there is none. */
  async stateOf(part: PartName): Promise<PartState | undefined> {
    return (await this.#read(part))?.state;
  }

  /** Returns the directory of a recording whose files are complete; undefined if there is none. */
  async directoryOf(part: PartName): Promise<string | undefined> {
    const directory = await this.#existing(part);
    if (directory === undefined) return undefined;
    const listed = await this.#read(part);

    return listed === undefined || listed.state === 'recording' ? undefined : directory;
  }

  /** Removes a recording, but not its objects in a bucket. Returns false if there is none, or it is in progress. */
  async remove(part: PartName): Promise<boolean> {
    const { mixes } = this.#options;
    const directory = await this.directoryOf(part);
    if (directory === undefined) {
      if ((await this.#existing(part)) !== undefined) return false;
      // A node that shares the directory may have removed the files that this one is uploading.
      this.#options.cancel(join(this.#options.directory, part.roomId, part.name));
      await mixes.remove(part);
      return this.#options.notes.remove(part);
    }
    this.#options.cancel(directory);
    await mixes.remove(part);
    await rm(directory, { recursive: true, force: true });
    // Fails unless this was the room's last recording.
    await rmdir(dirname(directory)).catch(() => undefined);
    await this.#options.notes.remove(part);

    return true;
  }

  async #onDisk(roomId: string | undefined): Promise<PartName[]> {
    const { directory } = this.#options;
    const found: PartName[] = [];
    for (const room of roomId === undefined ? await directories(directory) : [roomId]) {
      for (const name of await directories(join(directory, room))) found.push({ roomId: room, name });
    }

    return found;
  }

  async #existing({ roomId, name }: PartName): Promise<string | undefined> {
    const room = join(this.#options.directory, roomId);
    const directory = join(room, name);
    for (const path of [room, directory]) {
      // Links may lead anywhere.
      if (
        !(await lstat(path).then(
          (found) => found.isDirectory(),
          () => false,
        ))
      )
        return undefined;
    }

    return directory;
  }

  async #readWithMix(part: PartName): Promise<ListedPart | undefined> {
    const listed = await this.#read(part);
    const found = listed === undefined ? undefined : await this.#options.mixes.find(part);
    if (listed === undefined || found === undefined) return listed;

    return { ...listed, mix: found.mix, isHere: listed.isHere || found.isHere };
  }

  async #read(part: PartName): Promise<ListedPart | undefined> {
    const { notes, here, progress, clock, ownBucket } = this.#options;
    const directory = await this.#existing(part);
    const note = await notes.read(part);
    const place = { roomId: part.roomId, part: part.name };
    if (note !== undefined) {
      const { stored: _stored, ...extent } = note;
      return { ...place, state: 'uploaded', ...extent, isHere: false };
    }
    if (directory === undefined) return undefined;
    const names = (await readdir(directory).catch(() => [])).filter(
      (name) => !name.startsWith('.') && name !== MIX_FILE,
    );
    const doing = here(directory);
    if (names.length === 0 && doing === undefined) return undefined;
    const mark = await readMark(directory);
    const report = names.includes(REPORT_FILE) ? await readReport(directory) : mark?.draft;
    const touchedMs = (await touchedAt(directory)) ?? 0;
    const isRecent = touchedMs !== 0 && Math.abs(clock.wall() - touchedMs) <= ORPHAN_MS;
    const judged = judgePart({
      here: doing,
      isUploaded: false,
      failure: await readFailure(directory),
      mark,
      isAlive: isRecent && (mark?.writer === undefined || !isGone(mark.writer)),
      hasReport: names.includes(REPORT_FILE),
      ownBucket,
    });
    const share = progress(directory);
    const continues = report?.continues?.part;

    return {
      ...place,
      ...judged,
      ...(judged.state === 'uploading' && share !== undefined ? { progress: share } : {}),
      ...(report === undefined || report === null ? { tracks: names.length, seconds: 0 } : extentOf(report)),
      bytes: await bytesIn(directory, names),
      startedAt: startOf(part.name),
      uploadedAt: null,
      ...(typeof continues === 'string' ? { continues } : {}),
      isHere: doing !== undefined,
    };
  }
}

/** Orders recordings from the newest to the oldest; those of the same time by room. */
function comparePlaces(a: { roomId: string; part: string }, b: { roomId: string; part: string }): number {
  if (a.part !== b.part) return a.part > b.part ? -1 : 1;
  if (a.roomId === b.roomId) return 0;

  return a.roomId < b.roomId ? -1 : 1;
}

/** Reads the time from the name of a part. */
export function startOf(name: string): number {
  const [date, time = ''] = name.slice('part_'.length).split('T');

  return Date.parse(`${date}T${time.replaceAll('-', ':')}`) || 0;
}

/** Returns the bytes of a part's files. */
export async function bytesIn(directory: string, names: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const name of names) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    bytes += found?.size ?? 0;
  }

  return bytes;
}
