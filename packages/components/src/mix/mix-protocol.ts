import type { RecordedTrack } from './recording-folder.js';

/** The job of the mixing process. */
export interface MixJob {
  tracks: RecordedTrack[];
  output: string;
}

/** Messages of the mixing process. */
export type FromMixer =
  | { type: 'progress'; doneMs: number }
  /** The pictures of a file are beyond a limit, or there is no memory for them. Once for each cause. */
  | { type: 'leftOut'; path: string; reason: string }
  | { type: 'done'; durationMs: number }
  | { type: 'failed'; message: string };
