/**
 * A hidden file that stays beside a recording's files until they are uploaded. It holds the destination (never the
 * credentials) and, during recording, a draft of `report.json`. The node that works on the part touches it every few
 * seconds, so that after a crash a later run finds the leftovers, and nodes that share a directory leave each other's
 * parts alone.
 */
import { open, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type PartWriter, THIS_WRITER, writerIn } from './part-writer.js';
import { REPORT_FILE, reportText, type RecordingReport } from './report.js';

export const MARK_FILE = '.upload.json';
/** Names of the mark and the report while they are being written. */
const MARK_DRAFT = `${MARK_FILE}.new`;
const REPORT_DRAFT = `.${REPORT_FILE}.new`;
export const BEAT_MS = 10_000;
/** A part whose mark has not changed for this long is orphaned. */
export const ORPHAN_MS = 60_000;

export interface PartMark {
  bucket: string;
  /** Prefix of the object keys, without leading or trailing slashes. */
  prefix: string;
  /** The credentials came with the request, so another run can upload nothing. */
  byRequest?: true;
  /** Time of the first upload attempt in Unix milliseconds; null before it. */
  uploadingSince: number | null;
  /** The report so far, while the files are being written; null once `report.json` exists. */
  draft: RecordingReport | null;
  /** Component that asked for news of the upload. */
  notify?: string;
  /** Added by `writeMark`; undefined in marks of earlier releases. */
  writer?: PartWriter;
}

/** Replaces the mark atomically. */
export async function writeMark(directory: string, mark: PartMark): Promise<void> {
  await writeWhole(
    join(directory, MARK_FILE),
    join(directory, MARK_DRAFT),
    JSON.stringify({ ...mark, writer: THIS_WRITER }),
  );
}

async function writeWhole(path: string, draft: string, text: string): Promise<void> {
  await writeFile(draft, text);
  await rename(draft, path);
}

/** Returns undefined when there is no valid mark. */
export async function readMark(directory: string): Promise<PartMark | undefined> {
  try {
    const mark = JSON.parse(await readFile(join(directory, MARK_FILE), 'utf8')) as Partial<PartMark>;
    const { bucket, prefix, byRequest, notify, writer: written, uploadingSince = null, draft = null } = mark;
    if (typeof bucket !== 'string' || typeof prefix !== 'string') return undefined;
    const writer = writerIn(written);
    const hasTracks = draft !== null && typeof draft.tracks === 'object' && draft.tracks !== null;

    return {
      bucket,
      prefix,
      ...(byRequest === true ? { byRequest } : {}),
      ...(typeof notify === 'string' ? { notify } : {}),
      uploadingSince: typeof uploadingSince === 'number' ? uploadingSince : null,
      draft: hasTracks ? draft : null,
      ...(writer === undefined ? {} : { writer }),
    };
  } catch {
    return undefined;
  }
}

/** Shows that this node is still working on the part. */
export async function touchMark(directory: string, unixMs: number): Promise<void> {
  await utimes(join(directory, MARK_FILE), unixMs / 1_000, unixMs / 1_000).catch(() => undefined);
}

/**
 * Returns when a node last touched the mark, on that node's clock; 0 after a clean shutdown, undefined without a mark.
 */
export async function touchedAt(directory: string): Promise<number | undefined> {
  return (await stat(join(directory, MARK_FILE)).catch(() => undefined))?.mtimeMs;
}

export async function removeMark(directory: string): Promise<void> {
  for (const name of [MARK_FILE, MARK_DRAFT, REPORT_DRAFT]) {
    await rm(join(directory, name), { force: true }).catch(() => undefined);
  }
}

/** Writes the report atomically, even on a full disk: there it replaces the mark and reuses its blocks. */
export async function writeReport(directory: string, report: RecordingReport): Promise<void> {
  try {
    await writeWhole(join(directory, REPORT_FILE), join(directory, REPORT_DRAFT), reportText(report));
  } catch (error) {
    await rm(join(directory, REPORT_DRAFT), { force: true }).catch(() => undefined);
    const mark = await open(join(directory, MARK_FILE), 'r+').catch(() => undefined);
    if (mark === undefined) throw error;
    // Without whitespace it is no longer than the mark, which has the same content.
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
