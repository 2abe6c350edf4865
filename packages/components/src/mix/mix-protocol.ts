import type { RecordedTrack } from './recording-folder.js';

/** What the process that mixes is told, once. */
export interface MixJob {
  tracks: RecordedTrack[];
  output: string;
}

/** What it says. */
export type FromMixer =
  | { type: 'progress'; doneMs: number }
  | { type: 'done'; durationMs: number }
  | { type: 'failed'; message: string };
