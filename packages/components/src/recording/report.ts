import type { OriginDescription } from './origin-description.js';
import type { ReportedPause } from './pauses.js';

/** `report.json` describes a recording's files and their places in time. */
export const REPORT_FILE = 'report.json';

export interface RecordingReport {
  /** Id of the room. */
  recording_id: string;
  /** ISO 8601 in UTC, on the server's clock. */
  start_time: string;
  /** Present if the recording was paused: gaps in every track. */
  pauses?: ReportedPause[];
  /** Keyed by file name. */
  tracks: Record<string, TrackReport>;
}

export interface TrackReport extends OriginDescription {
  type: 'audio' | 'video';
  encoding: 'OPUS' | 'H264';
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
