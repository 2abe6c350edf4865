import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { ENCODINGS, RecordedCodec } from '../recorded-codecs.js';
import type { OriginDescription } from './origin-description.js';
import type { ReportedPause } from './pauses.js';

/** `report.json` describes a recording's files and their places in time. */
export const REPORT_FILE = 'report.json';

/** A report of 10,000 tracks has 6 MB; larger ones are not read. */
export const MAX_REPORT_BYTES = 16 * 1024 * 1024;

export interface RecordingReport {
  /** Id of the room. */
  recording_id: string;
  /** ISO 8601 in UTC, on the server's clock. */
  start_time: string;
  /**
   * Present if the room has moved here while it was recorded: the part on its former node, and the nanoseconds between
   * them, by the clocks of both nodes.
   */
  continues?: { part: string; gap: number };
  /** Present if the recording was paused: gaps in every track. */
  pauses?: ReportedPause[];
  /** Keyed by file name. */
  tracks: Record<string, TrackReport>;
}

export interface TrackReport extends OriginDescription {
  type: 'audio' | 'video';
  encoding: (typeof ENCODINGS)[RecordedCodec];
  /** Nanoseconds from the start of the recording to the start of the track. */
  offset: number;
  /** In ticks of `clock_rate`. */
  start_timestamp: number;
  end_timestamp: number;
  clock_rate: number;
  metadata: unknown;
  origin: string;
  ssrc: number;
  /** ISO 8601 in UTC, on the server's clock. */
  start_time: string;
}

export function reportText(report: RecordingReport): string {
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

/** Returns undefined if the report cannot be read, is too large, or is not one. */
export async function readReport(directory: string): Promise<RecordingReport | undefined> {
  const file = await open(join(directory, REPORT_FILE)).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    if ((await file.stat()).size > MAX_REPORT_BYTES) return undefined;
    const report = JSON.parse(await file.readFile('utf8')) as Partial<RecordingReport> | null;
    const tracks = report?.tracks;

    return typeof tracks === 'object' && tracks !== null ? (report as RecordingReport) : undefined;
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}
