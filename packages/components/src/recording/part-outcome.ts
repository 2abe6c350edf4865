/**
 * What became of parts: a note about an uploaded one, which outlives its files, and the reason of an abandoned one,
 * which lies beside them.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCount, PartNotes, readJson } from './part-notes.js';

const FAILURE_FILE = '.failed.json';
const MAX_REASON = 500;

export interface UploadNote {
  tracks: number;
  seconds: number;
  bytes: number;
  /** Unix milliseconds. */
  startedAt: number;
  uploadedAt: number;
  /** Where its objects are; undefined in notes of earlier releases. */
  stored?: StoredPlace;
  /** Name of the part that it continues. */
  continues?: string;
}

export interface StoredPlace {
  bucket: string;
  /** Prefix of the object keys, without leading or trailing slashes. */
  prefix: string;
}

/** The notes about uploaded parts. */
export class UploadNotes extends PartNotes<UploadNote> {
  constructor(directory: string) {
    super(directory, uploadNoteIn);
  }
}

function uploadNoteIn(value: Readonly<Record<string, unknown>>): UploadNote | undefined {
  const { tracks, seconds, bytes, startedAt, uploadedAt, stored, continues } = value;
  if (!isCount(tracks) || !isCount(seconds) || !isCount(bytes)) return undefined;
  if (!isCount(startedAt) || !isCount(uploadedAt)) return undefined;
  const { bucket, prefix } = (stored ?? {}) as Partial<StoredPlace>;
  const isPlace = typeof bucket === 'string' && typeof prefix === 'string';

  return {
    tracks,
    seconds,
    bytes,
    startedAt,
    uploadedAt,
    ...(isPlace ? { stored: { bucket, prefix } } : {}),
    ...(typeof continues === 'string' ? { continues } : {}),
  };
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
