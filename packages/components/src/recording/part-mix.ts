/** What is known about the mix of a part: a note of its own, which is true after a crash at any moment. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MixPicture } from '../mix/mix-protocol.js';
import { ORPHAN_MS } from './part-mark.js';
import { isCount, type PartName, PartNotes } from './part-notes.js';
import { isGone, type PartWriter, THIS_WRITER, writerIn } from './part-writer.js';

/** The result lies beside the tracks, on the disk or in the bucket. */
export const MIX_FILE = 'mix.mp4';

const ACTIVE = ['queued', 'fetching', 'mixing', 'uploading'] as const;
const ENDED = ['finished', 'uploaded', 'failed'] as const;

/**
 * `queued`: other mixes of this node come first. `fetching`: the tracks come from their bucket. `finished`: the movie
 * is on the disk alone. `uploaded`: it is in the bucket, and for a while on the disk.
 */
export type MixState = (typeof ACTIVE)[number] | (typeof ENDED)[number];

export interface MixNote extends MixPicture {
  state: MixState;
  /** Why it failed. */
  reason?: string;
  /** Names of the parts that it lacks, because they cannot be found. */
  missing?: readonly string[];
  /** Length of the movie, once there is one. */
  seconds?: number;
  bytes?: number;
  /** Unix milliseconds. */
  requestedAt: number;
  /** Unix milliseconds; null before the end. */
  endedAt: number | null;
}

/** A note on the disk. */
interface WrittenNote extends MixNote {
  /** Process that works on it. */
  writer: PartWriter;
}

/** The mix of a part in the list of recordings. */
export interface ListedMix extends MixNote {
  /** Done of the present state, 0 to 1; only while this node fetches or mixes. */
  progress?: number;
  /** Present while the movie is on the disk. */
  file?: typeof MIX_FILE;
}

/** The mixes of parts, for their list. */
export interface PartMixes {
  /** Returns the mix of a recording; undefined if none was asked for. */
  find(part: PartName): Promise<FoundMix | undefined>;
  /** Ends the mix of a recording and removes its result, but not from a bucket. Returns false if there is none. */
  remove(part: PartName): Promise<boolean>;
}

export interface FoundMix {
  mix: ListedMix;
  /** This node works on it. */
  isHere: boolean;
}

export function isActive({ state }: Pick<MixNote, 'state'>): boolean {
  return (ACTIVE as readonly string[]).includes(state);
}

/** Notes about mixes. */
export class MixNotes {
  readonly #notes: PartNotes<WrittenNote>;

  constructor(directory: string) {
    this.#notes = new PartNotes(directory, noteIn);
  }

  /** Replaces the note atomically. @throws NodeJS.ErrnoException when the system refuses */
  write(part: PartName, note: MixNote): Promise<void> {
    return this.#notes.write(part, { ...note, writer: THIS_WRITER });
  }

  /**
   * Returns the note of a part. One whose process is gone, or has not touched it for a minute by `nowMs`, has failed.
   */
  async read(part: PartName, nowMs: number): Promise<MixNote | undefined> {
    const found = await this.#notes.read(part);
    if (found === undefined) return undefined;
    const { writer, ...note } = found;
    if (!isActive(note)) return note;
    // This process knows its own jobs without their notes.
    const isOwn = writer.run === THIS_WRITER.run;
    const touchedMs = (await this.#notes.touchedAt(part)) ?? 0;
    if (!isOwn && !isGone(writer) && Math.abs(nowMs - touchedMs) <= ORPHAN_MS) return note;

    const reason =
      note.state === 'uploading'
        ? 'the node ended before the movie was uploaded'
        : 'the process that mixed it has ended';

    return { ...note, state: 'failed', reason, endedAt: touchedMs };
  }

  /** Returns false if the note of this process has been removed, or replaced by another process. */
  async isOwn(part: PartName): Promise<boolean> {
    const note = await this.#notes.read(part);
    // A read that fails once must not end a mix of hours.
    return note === undefined ? !(await this.#notes.isMissing(part)) : note.writer.run === THIS_WRITER.run;
  }

  /** Returns false if the process that worked on the mix has ended, or none ever did. */
  async isWorkedOn(part: PartName, nowMs: number): Promise<boolean> {
    const note = await this.read(part, nowMs);
    // Nothing that another node needs may be removed because a read fails once.
    return note === undefined ? !(await this.#notes.isMissing(part)) : isActive(note);
  }

  /** Shows other nodes that this one works on the mix. */
  touch(part: PartName, nowMs: number): Promise<void> {
    return this.#notes.touch(part, nowMs);
  }

  /** Returns whether there was one. */
  remove(part: PartName): Promise<boolean> {
    return this.#notes.remove(part);
  }

  tidy(nowMs: number): Promise<void> {
    return this.#notes.tidy(nowMs);
  }
}

function noteIn(value: Readonly<Record<string, unknown>>): WrittenNote | undefined {
  const {
    state,
    reason,
    missing,
    layout,
    width,
    height,
    seconds,
    bytes,
    requestedAt,
    endedAt,
    writer: written,
  } = value;
  const writer = writerIn(written);
  const isState = [...ACTIVE, ...ENDED].includes(state as MixState);
  if (!isState || writer === undefined || (layout !== 'grid' && layout !== 'speaker')) return undefined;
  if (!isCount(width) || !isCount(height) || !isCount(requestedAt)) return undefined;

  return {
    state: state as MixState,
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(isNames(missing) ? { missing } : {}),
    layout,
    width,
    height,
    ...(isCount(seconds) ? { seconds } : {}),
    ...(isCount(bytes) ? { bytes } : {}),
    requestedAt,
    endedAt: isCount(endedAt) ? endedAt : null,
    writer,
  };
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string');
}

/** Returns what the list shows of a mix whose part has its files in `directory`. */
export async function listedMix(note: MixNote, directory: string): Promise<ListedMix> {
  const found = note.bytes === undefined ? undefined : await stat(join(directory, MIX_FILE)).catch(() => undefined);
  // Another size: the movie of an earlier mix.
  return found !== undefined && found.size === note.bytes ? { ...note, file: MIX_FILE } : note;
}
