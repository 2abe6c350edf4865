/**
 * Beside the files of a recording lies a hidden one for as long as they have not arrived in their bucket: where they belong
 * (never with which credentials), and while they are being written what `report.json` will say. Who works on the part
 * touches it every few seconds. So after a crash another run of the node knows what was left behind, and two nodes that share
 * a directory keep their hands off each other's recordings.
 */
import { open, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REPORT_FILE, reportText, type RecordingReport } from './report.js';

export const MARK_FILE = '.upload.json';
/** Mark and report until they are whole. */
const MARK_DRAFT = `${MARK_FILE}.new`;
const REPORT_DRAFT = `.${REPORT_FILE}.new`;
export const BEAT_MS = 10_000;
/** Nobody works on a part whose mark was not touched for so long. */
export const ORPHAN_MS = 60_000;

export interface PartMark {
  bucket: string;
  /** Of its keys, without slashes at the ends. */
  prefix: string;
  /** When it was first tried to upload it, Unix milliseconds; null before. */
  uploadingSince: number | null;
  /** As of now, while the files are being written; null when `report.json` is there. */
  draft: RecordingReport | null;
}

/** The whole mark or the one before, whatever happens meanwhile. */
export async function writeMark(directory: string, mark: PartMark): Promise<void> {
  await writeWhole(directory, MARK_FILE, MARK_DRAFT, JSON.stringify(mark));
}

async function writeWhole(directory: string, name: string, draft: string, text: string): Promise<void> {
  await writeFile(join(directory, draft), text);
  await rename(join(directory, draft), join(directory, name));
}

/** Undefined when there is none that makes sense. */
export async function readMark(directory: string): Promise<PartMark | undefined> {
  try {
    const mark = JSON.parse(await readFile(join(directory, MARK_FILE), 'utf8')) as Partial<PartMark>;
    const { bucket, prefix, uploadingSince = null, draft = null } = mark;
    if (typeof bucket !== 'string' || typeof prefix !== 'string') return undefined;
    const hasTracks = draft !== null && typeof draft.tracks === 'object' && draft.tracks !== null;

    return {
      bucket,
      prefix,
      uploadingSince: typeof uploadingSince === 'number' ? uploadingSince : null,
      draft: hasTracks ? draft : null,
    };
  } catch {
    return undefined;
  }
}

/** Somebody still works on it. */
export async function touchMark(directory: string, unixMs: number): Promise<void> {
  await utimes(join(directory, MARK_FILE), unixMs / 1_000, unixMs / 1_000).catch(() => undefined);
}

export async function isOrphan(directory: string, unixMs: number): Promise<boolean> {
  const found = await stat(join(directory, MARK_FILE)).catch(() => undefined);

  return found !== undefined && unixMs - found.mtimeMs > ORPHAN_MS;
}

export async function removeMark(directory: string): Promise<void> {
  for (const name of [MARK_FILE, MARK_DRAFT, REPORT_DRAFT]) {
    await rm(join(directory, name), { force: true }).catch(() => undefined);
  }
}

/** The whole report or none; also where the disk is full: then it takes the place of the mark, which has its blocks already. */
export async function writeReport(directory: string, report: RecordingReport): Promise<void> {
  try {
    await writeWhole(directory, REPORT_FILE, REPORT_DRAFT, reportText(report));
  } catch (error) {
    await rm(join(directory, REPORT_DRAFT), { force: true }).catch(() => undefined);
    const mark = await open(join(directory, MARK_FILE), 'r+').catch(() => undefined);
    if (mark === undefined) throw error;
    // Without blanks it is not longer than the mark, which holds the same.
    const text = JSON.stringify(report);
    try {
      await mark.writeFile(text);
      await mark.truncate(Buffer.byteLength(text));
    } finally {
      await mark.close();
    }
    await rename(join(directory, MARK_FILE), join(directory, REPORT_FILE));
  }
}
