import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ComponentError } from '../errors.js';
import { codecOf, encodingsOf, type RecordedCodec } from '../recorded-codecs.js';

const REPORT_FILE = 'report.json';
/** A century; larger values are invalid. */
const MAX_MS = 100 * 365 * 86_400_000;

/** One file of a recording and its place in time. */
export interface RecordedTrack {
  path: string;
  kind: 'audio' | 'video';
  codec: RecordedCodec;
  /** Peer or component that published it. */
  origin: string;
  /** Offset from the start of the earliest track. */
  startMs: number;
}

export interface Recording {
  /** Ordered by start. */
  tracks: RecordedTrack[];
  /** Length given in the reports; the files may differ. */
  durationMs: number;
}

/** What one node has recorded: all of a recording, or a part of one whose room has moved. */
interface RecordedPart {
  directory: string;
  tracks: (RecordedTrack & { endMs: number })[];
  /** End of the last track, from the start of the part. */
  endMs: number;
  /** Unix milliseconds by the clock of its node; NaN if the report does not say. */
  startedAtMs: number;
  continues: Record<string, unknown> | undefined;
}

/** Longest time without any track that is shown between two parts: the clocks of their nodes may differ. */
const MAX_GAP_MS = 10 * 60_000;

/**
 * Reads the tracks that `report.json` lists with their offsets, from the directories of the parts of one recording in
 * order, each named after its part. With `hasGaps`, parts between them may be missing.
 * @throws ComponentError `BAD_RECORDING`
 */
export async function readRecording(directories: readonly string[], hasGaps = false): Promise<Recording> {
  const tracks: RecordedPart['tracks'] = [];
  let before: RecordedPart | undefined;
  let beginMs = 0;
  for (const directory of directories) {
    const part = await readPart(directory);
    if (before !== undefined) beginMs += lengthOf(before, part, hasGaps);
    for (const track of part.tracks) {
      tracks.push({ ...track, startMs: beginMs + track.startMs, endMs: beginMs + track.endMs });
    }
    before = part;
  }
  if (before === undefined) throw bad('no directory of a recording is given');
  const sorted = tracks.toSorted((a, b) => a.startMs - b.startMs || a.path.localeCompare(b.path));
  const firstMs = sorted[0]!.startMs;

  return {
    tracks: sorted.map(({ endMs: _end, ...track }) => ({ ...track, startMs: track.startMs - firstMs })),
    durationMs: Math.max(...sorted.map(({ endMs }) => endMs)) - firstMs,
  };
}

/** Returns the time from the start of a part to that of the next one. */
function lengthOf(part: RecordedPart, next: RecordedPart, hasGaps: boolean): number {
  const before = basename(part.directory);
  const path = join(next.directory, REPORT_FILE);
  const isNext = next.continues?.['part'] === before;
  if (next.continues === undefined || (!isNext && !hasGaps)) throw bad(`${path} does not continue ${before}`);
  const lengthMs = next.startedAtMs - part.startedAtMs;
  const byClocks = Number.isFinite(lengthMs)
    ? lengthMs
    : part.endMs + (isNext ? number(next.continues, 'gap', path) / 1e6 : 0);

  return Math.min(Math.max(byClocks, part.endMs), part.endMs + MAX_GAP_MS);
}

async function readPart(directory: string): Promise<RecordedPart> {
  const path = join(directory, REPORT_FILE);
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw bad(`${path} cannot be read: is this the directory of a finished recording?`, cause);
  });
  const report = reportIn(text, path);
  const tracks: RecordedPart['tracks'] = [];
  for (const [file, entry] of Object.entries(report.tracks)) {
    const track = trackOf(directory, file, entry);
    const size = await stat(track.path).then(
      (found) => (found.isFile() ? found.size : 0),
      () => 0,
    );
    if (size === 0) throw bad(`${path} lists ${file}, which is missing or empty`);
    tracks.push(track);
  }
  if (tracks.length === 0) throw bad(`${path} lists no track`);
  const { continues, start_time: startTime } = report;

  return {
    directory,
    tracks,
    endMs: Math.max(...tracks.map(({ endMs }) => endMs)),
    startedAtMs: typeof startTime === 'string' ? Date.parse(startTime) : Number.NaN,
    continues: isObject(continues) ? continues : undefined,
  };
}

function reportIn(text: string, path: string): Record<string, unknown> & { tracks: Record<string, unknown> } {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch (cause) {
    throw bad(`${path} is not JSON`, cause);
  }
  const tracks = isObject(report) ? report['tracks'] : undefined;
  if (!isObject(tracks)) throw bad(`${path} has no "tracks"`);

  return { ...(report as Record<string, unknown>), tracks };
}

function trackOf(directory: string, file: string, entry: unknown): RecordedTrack & { endMs: number } {
  if (file !== basename(file) || file === '' || file === '.' || file === '..' || file.includes('\0')) {
    throw bad(`${JSON.stringify(file)} is not the name of a file in the recording`);
  }
  if (!isObject(entry)) throw bad(`the report does not mention ${file}`);
  const { type, encoding } = entry;
  if (type !== 'audio' && type !== 'video') throw bad(`${file} is of the type ${JSON.stringify(type)}`);
  const codec = codecOf(type, encoding);
  if (codec === undefined) {
    throw bad(`${file} has the encoding ${JSON.stringify(encoding)}, not ${encodingsOf(type).join(', ')}`);
  }
  const startMs = number(entry, 'offset', file) / 1e6;
  const ticks = number(entry, 'end_timestamp', file) - number(entry, 'start_timestamp', file);
  const endMs = startMs + (ticks * 1_000) / Math.max(1, number(entry, 'clock_rate', file));
  if (startMs > MAX_MS || endMs > MAX_MS) throw bad(`${file} ends after the latest time that can be represented`);

  const origin = typeof entry['origin'] === 'string' ? entry['origin'] : file;

  return { path: join(directory, file), kind: type, codec, origin, startMs, endMs };
}

function number(entry: Record<string, unknown>, key: string, file: string): number {
  const value = entry[key];
  if (typeof value !== 'number' || !(value >= 0)) {
    throw bad(`${file} has the ${key} ${JSON.stringify(value)}, not a number from 0`);
  }

  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bad(message: string, cause?: unknown): ComponentError {
  return new ComponentError('BAD_RECORDING', message, cause === undefined ? {} : { cause });
}
