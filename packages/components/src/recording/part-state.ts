import type { PartMark } from './part-mark.js';
import type { RecordingReport } from './report.js';

/**
 * `recording`: files are being written. `finished`: they are complete, or will be within a minute after a crash; an
 * upload may follow. `uploading`: an upload is in progress, or is resumed within a minute after a crash. `failed`: the
 * files, if any are left, will not be uploaded.
 */
export type PartState = 'recording' | 'finished' | 'uploading' | 'uploaded' | 'failed';

/** Everything that is known about a part, most of it from the disk, so that it survives a crash at any moment. */
export interface PartEvidence {
  /** What this process is doing with the part. */
  here: 'recording' | 'uploading' | undefined;
  /** There is a note that every object arrived; it is written before the files are removed. */
  isUploaded: boolean;
  /** Why the upload was given up on; undefined = it was not. */
  failure: string | undefined;
  mark: PartMark | undefined;
  /** The process that wrote the mark may still be working on the part. */
  isAlive: boolean;
  hasReport: boolean;
  /** Bucket of this node's own credentials, with which leftovers of earlier runs are uploaded. */
  ownBucket: string | undefined;
}

export interface JudgedPart {
  state: PartState;
  /** Why it failed. */
  reason?: string;
}

/** Judges the state of a part. */
export function judgePart(evidence: PartEvidence): JudgedPart {
  const { here, isUploaded, failure, mark, isAlive, hasReport, ownBucket } = evidence;
  if (isUploaded) return { state: 'uploaded' };
  if (here !== undefined) return { state: here };
  if (failure !== undefined) return { state: 'failed', reason: failure };
  if (mark === undefined) {
    return hasReport ? { state: 'finished' } : { state: 'failed', reason: 'there is no report of its tracks' };
  }
  const isWritten = mark.draft === null || hasReport;
  if (isAlive) return { state: isWritten ? 'uploading' : 'recording' };
  if (mark.byRequest === true) {
    return { state: 'failed', reason: 'the credentials of the request ended with the process that recorded it' };
  }
  if (mark.bucket !== ownBucket) {
    return { state: 'failed', reason: 'this node has no credentials for the bucket of the recording' };
  }

  return { state: isWritten ? 'uploading' : 'finished' };
}

/** Returns the number of tracks in a report, and where the last one ends, in seconds from the start. */
export function extentOf({ tracks }: Pick<RecordingReport, 'tracks'>): { tracks: number; seconds: number } {
  let seconds = 0;
  const all = Object.values(tracks);
  for (const track of all) {
    // A damaged report must not hide the other recordings.
    if (typeof track !== 'object' || track === null) continue;
    const { offset, start_timestamp, end_timestamp, clock_rate } = track;
    const end = offset / 1e9 + (end_timestamp - start_timestamp) / clock_rate;
    if (Number.isFinite(end)) seconds = Math.max(seconds, end);
  }

  return { tracks: all.length, seconds: Math.round(seconds * 1_000) / 1_000 };
}
