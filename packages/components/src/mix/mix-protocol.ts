import type { RecordedTrack } from './recording-folder.js';

/** The job of the mixing process. */
export interface MixJob {
  tracks: RecordedTrack[];
  output: string;
}

/** Messages of the mixing process. */
export type FromMixer =
  | { type: 'progress'; doneMs: number }
  | { type: 'done'; durationMs: number }
  | { type: 'failed'; message: string };
